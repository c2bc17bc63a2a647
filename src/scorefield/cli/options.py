"""Arguments and options that commands share, read without heavy imports."""

import csv
import functools
import inspect
import pathlib
from typing import Annotated

import typer

from scorefield.cli.console import state
from scorefield.data.formats import KINDS, Reading

PANEL = "How the table is read"
MODELS = ("auto", "gaussian", "mixture", "kernel", "energy", "mlp", "diffusion")
PURPOSES = ("learning", "sharing")
TAUGHT = ("boosting", "forest", "logistic")
WHERE = ("everywhere", "clear", "core", "boundary", "diverse")


def _set_quiet(quiet: bool):
    state["quiet"] = quiet
    return quiet


def one_of(names):
    """A callback that refuses other values than these names, and lets None pass."""

    def check(given: str | None):
        if given is not None and given not in names:
            raise typer.BadParameter(f"expected {', '.join(names)}, got {given!r}.")
        return given

    return check


Data = Annotated[pathlib.Path, typer.Argument(help=f"Table: {', '.join(KINDS)}.")]
DataOrFolder = Annotated[pathlib.Path, typer.Argument(help=f"Table: {', '.join(KINDS)}, or a folder of Parquet files.")]
ModelFile = Annotated[pathlib.Path, typer.Argument(help="File written by [b]scorefield fit[/b] or [b]distill[/b].")]
Target = Annotated[str, typer.Option(help="Column of the labels.")]
Groups = Annotated[
    str | None,
    typer.Option(help="Column of groups of related rows, such as customer: kept together in splits, and not learned."),
]
Output = Annotated[pathlib.Path, typer.Option("--output", "-o", help="File to write; its ending sets the format.")]
Model = Annotated[str, typer.Option(help=f"{', '.join(MODELS)}.", callback=one_of(MODELS))]
GivenModel = Annotated[
    str | None,
    typer.Option(
        help=f"{', '.join(MODELS)}: the model of each class that rows are drawn from.",
        callback=one_of(MODELS),
        show_default=False,
    ),
]
Purpose = Annotated[
    str,
    typer.Option(
        help="'learning' keeps rows that a classifier is sure of: they are meant for a learner, and are not a "
        "faithful copy of their class. 'sharing' draws rows that follow the distribution of their class.",
        callback=one_of(PURPOSES),
    ),
]
Where = Annotated[
    str,
    typer.Option(
        help=f"With --purpose sharing, which generated rows are kept: {', '.join(WHERE)}. 'everywhere' keeps all.",
        callback=one_of(WHERE),
    ),
]
Ids = Annotated[
    str,
    typer.Option(
        help="Identifiers of generated rows: 'new' continues the pattern of the column after its largest key, 'blank' "
        "leaves them empty.",
        callback=one_of(("new", "blank")),
    ),
]
Html = Annotated[pathlib.Path | None, typer.Option(help="Write a page with pictures.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same output.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.", callback=_set_quiet)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs, and nothing else.")]
Out = Annotated[pathlib.Path, typer.Option(help="Folder for the rows and the report.")]
Jobs = Annotated[int, typer.Option(min=1, help="Number of processes.")]


def _list(option, help):
    return Annotated[list[str] | None, typer.Option(option, help=help, rich_help_panel=PANEL, show_default=False)]


READING = {
    "kinds": (_list("--as", "What columns are, such as zip=category,age=number."), None),
    "drop": (_list("--drop", "Columns to leave out, such as id,name."), None),
    "na": (_list("--na", "More texts that mean missing, such as unknown,-999."), None),
    "sep": (
        Annotated[str | None, typer.Option(help="Separator of a text file.", rich_help_panel=PANEL)],
        None,
    ),
    "decimal": (Annotated[str, typer.Option(help="Decimal mark: . or ,", rich_help_panel=PANEL)], "."),
    "encoding": (
        Annotated[str | None, typer.Option(help="Encoding of a text file; utf-8 unless given.", rich_help_panel=PANEL)],
        None,
    ),
}


def reads_table(command):
    """Add the options of reading a table to a command, which receives them as one `reading`."""
    signature = inspect.signature(command)
    keyword = inspect.Parameter.KEYWORD_ONLY
    added = {
        name: inspect.Parameter(name, keyword, default=default, annotation=annotation)
        for name, (annotation, default) in READING.items()
    }
    own = [parameter for name, parameter in signature.parameters.items() if name != "reading"]

    @functools.wraps(command)
    def with_reading(**given):
        reading = make_reading(**{name: given.pop(name) for name in READING})
        return command(**given, reading=reading)

    del with_reading.__wrapped__  # typer would read the types of the command itself
    with_reading.__signature__ = signature.replace(parameters=[*own, *added.values()])
    with_reading.__annotations__ = {p.name: p.annotation for p in with_reading.__signature__.parameters.values()}
    return with_reading


def make_reading(kinds=None, drop=None, na=None, sep=None, decimal=".", encoding=None):
    """How to read a table, from the texts of the options."""
    if decimal not in (".", ","):
        raise typer.BadParameter(f"expected . or , got {decimal!r}.", param_hint="--decimal")
    sep = {"\\t": "\t", "tab": "\t"}.get(sep, sep)
    if sep is not None and len(sep) != 1:
        raise typer.BadParameter(f"expected one character, got {sep!r}.", param_hint="--sep")
    return Reading(sep, decimal, encoding, tuple(words(na)), tuple(words(drop)), columns_as(kinds))


def words(given):
    """The words of an option that may be repeated and may hold several words; a quoted word may hold commas."""
    return [word.strip() for row in csv.reader(given or [], skipinitialspace=True) for word in row]


def columns_as(given):
    """Names to kinds, from texts such as zip=category."""
    if not given:
        return {}
    from scorefield.data.kinds import GIVEN_KINDS as COLUMN_KINDS

    found = {}
    for pair in words(given):
        name, _, kind = pair.rpartition("=")
        if not name:
            raise typer.BadParameter(f"expected column=kind, such as zip=category, got {pair!r}.", param_hint="--as")
        if kind not in COLUMN_KINDS:
            said = f"expected a kind of column in {pair!r}, got {kind!r}; the kinds are {', '.join(COLUMN_KINDS)}."
            raise typer.BadParameter(said, param_hint="--as")
        found[name] = kind
    return found


def strategy(text, labels):
    """A sampling strategy from its text: a name, a ratio, or label=count pairs."""
    if "=" in text:
        known, wanted = {str(label): label for label in labels}, {}
        for pair in text.split(","):
            name, _, count = pair.partition("=")
            if name.strip() not in known or not count.strip().isdecimal():
                raise ValueError(
                    f"Expected label=count with a label of {list(known)} in --strategy, got {pair!r}; correct it."
                )
            wanted[known[name.strip()]] = int(count)
        return wanted
    try:
        return float(text)
    except ValueError:
        return text
