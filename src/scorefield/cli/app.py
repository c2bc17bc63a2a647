"""The `scorefield` command."""

import contextlib
import pathlib
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from scorefield import __version__

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Score fields of tabular data: over-sample, classify, generate, judge, and reproduce the paper.",
)
DEMO = ("recover-2d", "imbalanced-10d")
state = {"debug": False, "quiet": False}


def _set_quiet(quiet: bool):
    state["quiet"] = quiet
    return quiet


Data = Annotated[pathlib.Path, typer.Argument(help="Table: .csv, .csv.gz or .parquet.")]
DataOrFolder = Annotated[
    pathlib.Path, typer.Argument(help="Table: .csv, .csv.gz, .parquet, or a folder of Parquet files.")
]
ModelFile = Annotated[pathlib.Path, typer.Argument(help="File written by [b]scorefield fit[/b].")]
Target = Annotated[str, typer.Option(help="Column of the labels.")]
Output = Annotated[pathlib.Path, typer.Option("--output", "-o", help="File to write; its ending sets the format.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same output.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.", callback=_set_quiet)]
Out = Annotated[pathlib.Path, typer.Option(help="Folder for the rows and the report.")]
Jobs = Annotated[int, typer.Option(min=1, help="Number of processes.")]


def _console():
    return Console(stderr=True)


def _bar(console, quiet=False):
    """A progress bar on standard error, hidden unless that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console.quiet = quiet or not console.is_terminal  # rich before 14.3 prints a line after a disabled bar
    return Progress(*columns, console=console, disable=console.quiet)


def _verbose(quiet):
    """1 if training should show its bar: on a terminal, and not with --quiet."""
    return int(not quiet and _console().is_terminal)


def _working(what, quiet):
    """A spinner on standard error while something runs, hidden unless that is a terminal."""
    console = _console()
    return contextlib.nullcontext() if quiet or not console.is_terminal else console.status(escape(what))


def _say(quiet, text):
    if not quiet:
        typer.echo(text)


def show_error(error):
    message = " ".join(str(error).split()) or type(error).__name__
    _console().print("error: " + message, style="red", highlight=False, markup=False, soft_wrap=True)


def show_warning(message, *_where):
    """Print a warning as one line without its place in the code; takes the arguments of `warnings.showwarning`."""
    if not state["quiet"]:
        typer.echo("warning: " + " ".join(str(message).split()), err=True)


def _print_version(asked: bool):
    if asked:
        typer.echo(f"scorefield {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option(help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
):
    state.update(debug=debug, quiet=False)


@app.command()
def resample(
    data: Data,
    target: Target,
    output: Output,
    strategy: Annotated[str, typer.Option(help="auto, a ratio such as 0.5, or counts such as fraud=3690.")] = "auto",
    model: Annotated[str, typer.Option(help="auto, gaussian, kernel, energy, mlp or diffusion.")] = "auto",
    step_size: Annotated[float | None, typer.Option(help="Step size of the Langevin chains.")] = None,
    chain_length: Annotated[int | None, typer.Option(help="Steps of each Langevin chain.")] = None,
    discard: Annotated[float | None, typer.Option(help="Share of each chain that is discarded.")] = None,
    mark: Annotated[bool, typer.Option("--mark", help="Add a column is_synthetic.")] = False,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
):
    """Over-sample the rare classes of a table.

    Example: [b]scorefield resample data.csv --target fraud -o balanced.parquet[/b]
    """
    from scorefield.cli import commands
    from scorefield.data.files import check_output, write_parts
    from scorefield.data.tables import read_labelled

    begin = time.perf_counter()
    check_output(output, force=force)
    with _working(f"reading {data}", quiet):
        table = read_labelled(data, target)
    chain = {"step_size": step_size, "chain_length": chain_length, "discard": discard}
    result, before, after = commands.resample(
        table, target, strategy=strategy, model=model, chain={k: v for k, v in chain.items() if v is not None},
        seed=seed, mark=mark, verbose=_verbose(quiet),
    )  # fmt: skip
    with _working(f"writing {output}", quiet):
        write_parts(output, [result], replace=force)
    for label in before:
        _say(quiet, f"{target}={label}: {before[label]} rows before, {after[label]} after")
    _say(quiet, f"wrote {output} after {time.perf_counter() - begin:.0f} s")


@app.command()
def fit(
    data: DataOrFolder,
    target: Target,
    output: Output,
    stream: Annotated[bool, typer.Option("--stream", help="Read Parquet in parts, whatever its size.")] = False,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
):
    """Fit a score-based classifier to a table of numbers and store it.

    A folder of Parquet files, or one above 256 MB, is read in parts and need not fit into memory.

    Example: [b]scorefield fit data.csv --target fraud -o model.skops[/b]
    """
    from scorefield.cli import commands
    from scorefield.data.files import check_output
    from scorefield.data.tables import read_labelled
    from scorefield.estimators.model_files import save_model

    check_output(output, force=force, kinds=(".skops",))
    if stream or commands.is_large(data):
        stored, n = commands.fit_parquet(data, target, seed=seed, verbose=_verbose(quiet))
    else:
        with _working(f"reading {data}", quiet):
            table = read_labelled(data, target)
        stored, n = commands.fit(table, target, seed=seed, verbose=_verbose(quiet)), len(table)
    save_model(output, stored, replace=force)
    model = stored["model"]
    _say(quiet, f"learned {len(model.classes_)} classes from {n} rows of {model.n_features_in_} columns")
    _say(quiet, f"wrote {output}")


@app.command()
def predict(
    model: ModelFile,
    data: DataOrFolder,
    output: Output,
    force: Force = False,
    quiet: Quiet = False,
):
    """Score a table: prediction, probability of each class and log density, in the order of its rows.

    Example: [b]scorefield predict model.skops new.csv -o scored.csv[/b]
    """
    from scorefield.cli import commands
    from scorefield.data.files import check_output, write_parts
    from scorefield.data.tables import read_parts
    from scorefield.estimators.model_files import load_model

    check_output(output, force=force)
    stored = load_model(model)
    with _bar(_console(), quiet) as bar:
        task = bar.add_task("rows", total=None)

        def scored():
            for part in read_parts(data):
                yield commands.scores(stored, part)
                bar.advance(task, len(part))

        n = write_parts(output, scored(), replace=force)
    _say(quiet, f"scored {n} rows\nwrote {output}")


@app.command()
def sample(
    model: ModelFile,
    output: Output,
    label: Annotated[str, typer.Option(help="Class to generate.")],
    n: Annotated[int, typer.Option("-n", min=1, help="Rows to generate.")] = 1000,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
):
    """Generate rows of one class.

    Example: [b]scorefield sample model.skops --label 1 -n 1000 -o rows.csv[/b]
    """
    from scorefield.cli import commands
    from scorefield.data.files import check_output, write_parts
    from scorefield.estimators.model_files import load_model

    check_output(output, force=force)
    stored = load_model(model)
    with _working("sampling", quiet):
        table = commands.sample(stored, label, n, seed)
    write_parts(output, [table], replace=force)
    _say(quiet, f"wrote {output}")


@app.command()
def quality(
    real: Data,
    synthetic: Annotated[pathlib.Path, typer.Argument(help="The generated table, of the same columns.")],
    html: Annotated[pathlib.Path | None, typer.Option(help="Write a page with pictures.")] = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
):
    """Check whether generated rows are credible: distributions, correlations, a two-sample test, copies.

    Example: [b]scorefield quality real.csv synthetic.csv --html quality.html[/b]
    """
    from scorefield.cli import commands
    from scorefield.data.files import check_output
    from scorefield.data.tables import read_table
    from scorefield.evaluation.quality import compare_tables

    if html is not None:
        check_output(html, force=force, kinds=(".html",))
    tables = read_table(real), read_table(synthetic)
    with _working("comparing", quiet):
        found = compare_tables(*tables, random_state=seed)
        if html is not None:
            commands.write_quality_page(html, found, *tables, replace=force)
    if not quiet:
        table = Table("column", "kind", "distance", box=None)
        for column in found.columns:
            table.add_row(escape(str(column["column"])), column["kind"], f"{column['distance']:.3f}")
        Console().print(table)
        for sentence in found.sentences:
            typer.echo(sentence)
        if html is not None:
            typer.echo(f"wrote {html}")


@app.command()
def advise(
    data: Data,
    target: Target,
    minutes: Annotated[float, typer.Option(min=0, help="Time to spend; more time gives narrower intervals.")] = 2.0,
    learner: Annotated[str, typer.Option(help="forest, logistic, neighbours, network or boosting.")] = "forest",
    html: Annotated[pathlib.Path | None, typer.Option(help="Write a page with a plot.")] = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
):
    """Tell whether over-sampling is worth it on a table: compares remedies and prints code for the best.

    Example: [b]scorefield advise data.csv --target fraud --html advice.html[/b]
    """
    from scorefield.cli import commands
    from scorefield.data.files import check_output
    from scorefield.data.tables import read_labelled

    if html is not None:
        check_output(html, force=force, kinds=(".html",))
    table = read_labelled(data, target)
    with _working(f"comparing remedies, about {minutes:g} minutes", quiet):
        advice = commands.advise(table, target, learner=learner, minutes=minutes, seed=seed)
    _say(quiet, f"{advice}\n\n{advice.code}")
    if html is not None:
        commands.write_advice_page(html, advice, replace=force)
        _say(quiet, f"wrote {html}")


@app.command()
def info(model: ModelFile):
    """Describe a stored model. Example: [b]scorefield info model.skops[/b]"""
    from scorefield.cli import commands
    from scorefield.estimators.model_files import load_model

    for name, value in commands.describe(load_model(model)).items():
        typer.echo(f"{name}: {value}")


def _run_study(registry, names, *, out, seeds, quick, jobs):
    """Run the named experiments of a registry (a module with EXPERIMENTS and STUDY) and write their report."""
    import matplotlib

    from scorefield.studies.engine.page import write_report
    from scorefield.studies.engine.runs import run_all

    matplotlib.use("Agg")
    chosen = [experiment for name, experiment in registry.EXPERIMENTS.items() if name in names]
    counts = {e.name: seeds or (e.quick_seeds if quick else e.seeds) for e in chosen}
    tasks = [(e, seed, e.settings(quick)) for e in chosen for seed in range(counts[e.name])]
    with _bar(_console()) as bar:
        task = bar.add_task("seeds", total=len(tasks))

        def finished(done):
            bar.update(task, advance=1, description=f"{done[0].name}, seed {done[1]}")

        failures = run_all(tasks, out, jobs=jobs, finished=finished)
    path, verdicts = write_report(registry.STUDY, chosen, out, seeds=seeds, quick=quick)
    typer.echo(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    typer.echo(f"wrote {path}")
    if failures:
        raise RuntimeError(f"{len(failures)} of {len(tasks)} seeds failed and are not in the report; {failures[0]}")


@app.command()
def reproduce(
    names: Annotated[list[str], typer.Argument(help="Experiments, or [b]all[/b], or [b]list[/b].")],
    out: Out = pathlib.Path("report"),
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds of each experiment.")] = None,
    quick: Annotated[bool, typer.Option(help="Few seeds and short training: a quarter of an hour for all.")] = False,
    jobs: Jobs = 1,
):
    """Run the paper's experiments and write a report.

    A stopped run continues where it was. Example: [b]scorefield reproduce imbalanced-10d --seeds 5[/b]
    """
    from scorefield.studies.paper import registry

    if names == ["list"]:
        table = Table("name", "seeds", "what", box=None)
        for experiment in registry.EXPERIMENTS.values():
            table.add_row(experiment.name, str(experiment.seeds), experiment.title)
        Console().print(table)
        return
    unknown = sorted(set(names) - set(registry.EXPERIMENTS) - {"all"})
    if unknown:
        raise typer.BadParameter(f"no experiment {unknown[0]!r}; `scorefield reproduce list` names them.")
    chosen = list(registry.EXPERIMENTS) if "all" in names else names
    _run_study(registry, chosen, out=out, seeds=seeds, quick=quick, jobs=jobs)


@app.command()
def benchmark(
    names: Annotated[list[str] | None, typer.Argument(help="oversampling, generative (none is both), peers.")] = None,
    out: Out = pathlib.Path("report"),
    seeds: Annotated[int | None, typer.Option(min=1, help="Splits to run: 44 are one repetition, 88 two.")] = None,
    quick: Annotated[bool, typer.Option(help="Five small tables, one split.")] = False,
    jobs: Jobs = 2,
):
    """Compare over-samplers and generative classifiers on 22 real imbalanced tables.

    A stopped run continues where it was. Example: [b]scorefield benchmark --quick[/b]
    """
    from scorefield.studies.benchmark import registry

    names = names or list(registry.DEFAULT)
    unknown = sorted(set(names) - set(registry.EXPERIMENTS))
    if unknown:
        raise typer.BadParameter(f"no benchmark {unknown[0]!r}; there are {', '.join(registry.EXPERIMENTS)}.")
    _run_study(registry, names, out=out, seeds=seeds, quick=quick, jobs=jobs)


@app.command()
def demo(out: Out = pathlib.Path("demo"), jobs: Jobs = 2):
    """Recover densities in 2-D and over-sample a 10-D table, in two minutes. Example: [b]scorefield demo[/b]"""
    from scorefield.studies.paper import registry

    _run_study(registry, DEMO, out=out, seeds=None, quick=True, jobs=jobs)
