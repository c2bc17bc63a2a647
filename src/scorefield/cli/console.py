"""What the commands say: lines, bars and spinners, errors and warnings."""

import contextlib
import shlex
import sys

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

state = {"debug": False, "quiet": False}


def error_console():
    return Console(stderr=True)


def progress_bar(console, quiet=False):
    """A progress bar on standard error, hidden unless that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console.quiet = quiet or not console.is_terminal  # rich before 14.3 prints a line after a disabled bar
    return Progress(*columns, console=console, disable=console.quiet)


def verbose(quiet):
    """1 if training should show its bar: on a terminal, and not with --quiet."""
    return int(not quiet and error_console().is_terminal)


def working(what, quiet):
    """A spinner on standard error while something runs, hidden unless that is a terminal."""
    console = error_console()
    return contextlib.nullcontext() if quiet or not console.is_terminal else console.status(escape(what))


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


def show_warning(message, *_where):
    """Print a warning as one line without its place in the code; takes the arguments of `warnings.showwarning`."""
    if not state["quiet"]:
        typer.echo("warning: " + " ".join(str(message).split()), err=True)
