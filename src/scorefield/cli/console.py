"""What the commands say: lines, bars and spinners, errors and warnings."""

import contextlib
import dataclasses
import json
import math
import shlex
import sys

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

state = {"debug": False, "quiet": False}


def error_console():
    return Console(stderr=True)


def progress_bar(console, quiet=False, left=False):
    """A progress bar on standard error with the time that passed or is left, hidden unless that is a terminal."""
    time = TimeRemainingColumn() if left else TimeElapsedColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), time)
    console.quiet = quiet or not console.is_terminal  # rich before 14.3 prints a line after a disabled bar
    return Progress(*columns, console=console, disable=console.quiet)


def verbose(quiet):
    """1 if training should show its bar: on a terminal, and not with --quiet."""
    return int(not quiet and error_console().is_terminal)


def working(what, quiet):
    """A spinner on standard error while something runs; one line where that is not a terminal."""
    console = error_console()
    if not quiet and console.is_terminal:
        return console.status(escape(what))
    if not quiet:
        typer.echo(f"{what} ...", err=True)
    return contextlib.nullcontext()


def announce(what, quiet):
    """One line on standard error before something that shows a bar on a terminal; nothing on a terminal."""
    if not quiet and not error_console().is_terminal:
        typer.echo(f"{what} ...", err=True)


def echo_json(value):
    """Print one JSON document, for other programs."""
    typer.echo(json.dumps(plain(value), ensure_ascii=False, indent=1))


def plain(value):
    """A value as JSON knows it: results become objects, arrays lists, and numbers that are not finite null."""
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def say(quiet, text):
    if not quiet:
        typer.echo(text)


def show_error(error):
    """Print an error as one line; the problems of a table as one line each, and the command that avoids them."""
    # The lines of other libraries' messages are joined; those of a report of this one are kept.
    lines = str(error).splitlines() if str(error).startswith("Expected ") else [str(error)]
    message = "\n".join(" ".join(line.split()) for line in lines) or type(error).__name__
    if getattr(error, "fix", None):
        message += f"\ntry: {shlex.join(['scorefield', *_corrected(sys.argv[1:], error.fix)])}"
    error_console().print("error: " + message, style="red", highlight=False, markup=False, soft_wrap=True)


def _corrected(arguments, fix):
    """The arguments with the options of `fix`; a wrong target is replaced."""
    for name, value in zip(fix[::2], fix[1::2], strict=True):
        if name == "--target" and name in arguments[:-1]:
            arguments[arguments.index(name) + 1] = value
        else:
            arguments += [name, value]
    return arguments


def show_warning(message, category=UserWarning, *_where):
    """Print a warning as one line without its place in the code; takes the arguments of `warnings.showwarning`.

    What libraries tell each other's developers is not for the user of a command.
    """
    if not state["quiet"] and not issubclass(category, DeprecationWarning | PendingDeprecationWarning):
        typer.echo("warning: " + " ".join(str(message).split()), err=True)
