"""The `scorefield` command."""

import pathlib
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

app = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False,
    help="Score fields of tabular data: reproduce the paper, and more.",
)  # fmt: skip
DEMO = ("recover-2d", "imbalanced-10d")
_state = {"debug": False}


def _console():
    return Console(stderr=True)


def _bar(console):
    """A progress bar on standard error, silent where that is no terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)


@app.callback()
def _options(debug: Annotated[bool, typer.Option(help="Show the traceback of an error.")] = False):
    _state["debug"] = debug


def _reproduce(names, *, out, seeds, quick, jobs):
    import matplotlib

    from scorefield.paper.page import write_report
    from scorefield.paper.registry import EXPERIMENTS
    from scorefield.paper.runs import run_all

    matplotlib.use("Agg")
    chosen = [EXPERIMENTS[name] for name in EXPERIMENTS if name in names]
    counts = {e.name: seeds or (e.quick_seeds if quick else e.seeds) for e in chosen}
    tasks = [(e, seed, e.settings(quick)) for e in chosen for seed in range(counts[e.name])]
    console = _console()
    with _bar(console) as bar:
        task = bar.add_task("seeds", total=len(tasks))

        def finished(done):
            bar.update(task, advance=1, description=f"{done[0].name}, seed {done[1]}")

        run_all(tasks, out, jobs=jobs, finished=finished)
    path, verdicts = write_report(chosen, out, seeds=seeds, quick=quick)
    typer.echo(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    typer.echo(f"wrote {path}")


Out = Annotated[pathlib.Path, typer.Option(help="Folder of the rows and the report.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes that share the seeds.")]


@app.command()
def reproduce(
    names: Annotated[list[str], typer.Argument(help="Experiments, or [b]all[/b], or [b]list[/b].")],
    out: Out = pathlib.Path("report"),
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds of each experiment.")] = None,
    quick: Annotated[bool, typer.Option(help="Few seeds and short training: a quarter of an hour for all.")] = False,
    jobs: Jobs = 1,
):
    """Run the paper's experiments and write a report of them.

    A run that was stopped goes on where it was. Example: [b]scorefield reproduce imbalanced-10d --seeds 5[/b]
    """
    from scorefield.paper.registry import EXPERIMENTS

    if names == ["list"]:
        table = Table("name", "seeds", "what", box=None)
        for experiment in EXPERIMENTS.values():
            table.add_row(experiment.name, str(experiment.seeds), experiment.title)
        Console().print(table)
        return
    unknown = sorted(set(names) - set(EXPERIMENTS) - {"all"})
    if unknown:
        raise typer.BadParameter(f"no experiment {unknown[0]!r}; `scorefield reproduce list` names them.")
    chosen = list(EXPERIMENTS) if "all" in names else names
    _reproduce(chosen, out=out, seeds=seeds, quick=quick, jobs=jobs)


@app.command()
def demo(out: Out = pathlib.Path("demo"), jobs: Jobs = 2):
    """Recover densities in 2-D and over-sample a 10-D table, in two minutes. Example: [b]scorefield demo[/b]"""
    _reproduce(DEMO, out=out, seeds=None, quick=True, jobs=jobs)


def main():
    """Run the command; an error is one line on standard error unless --debug is given."""
    try:
        app(prog_name="scorefield")
    except Exception as error:
        if _state["debug"]:
            raise
        message = " ".join(str(error).split()) or type(error).__name__
        _console().print(f"[bold red]error:[/] {message}", highlight=False, soft_wrap=True)
        sys.exit(1)
