"""The `scorefield` command: options are checked and tables are read before anything heavy is imported."""

import pathlib
import shlex
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from scorefield import __version__
from scorefield.cli import stored, study
from scorefield.cli.console import announce, echo_json, error_console, progress_bar, say, state, verbose, working
from scorefield.cli.options import (
    Data,
    Force,
    GivenModel,
    Groups,
    Html,
    Ids,
    Json,
    Model,
    Output,
    Purpose,
    Quiet,
    Seed,
    Target,
    Where,
    one_of,
    reads_table,
)
from scorefield.cli.options import (
    strategy as parse_strategy,
)
from scorefield.data import tables
from scorefield.data.files import check_output, write_parts
from scorefield.data.formats import Reading, output_file

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Score fields of tabular data: over-sample, classify, generate, judge, and reproduce the paper.",
)
LEARNERS = ("forest", "logistic", "neighbours", "network", "boosting")
METRICS = ("f1", "average_precision", "brier", "log_loss")


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
@reads_table
def columns(
    data: Data,
    reading: Reading,
    target: Annotated[
        str | None, typer.Option(help="Column of the labels: warns of keys whose order alone predicts them.")
    ] = None,
    as_json: Json = False,
):
    """Tell what each column of a table is taken for, and what is done with it; --as corrects it.

    Example: [b]scorefield columns data.csv --as zip=category[/b]
    """
    table = tables.read_table(data, reading) if target is None else tables.read_labelled(data, target, reading)

    from scorefield.data.description import describe_columns

    labels = None if target is None else table.frame[target]
    found = describe_columns(table.frame, columns=reading.columns, labels=labels)
    if as_json:
        echo_json(found.to_plain())
    else:
        typer.echo(found)


@app.command()
@reads_table
def resample(
    data: Data,
    target: Target,
    output: Output,
    reading: Reading,
    strategy: Annotated[str, typer.Option(help="auto, a ratio such as 0.5, or counts such as fraud=3690.")] = "auto",
    purpose: Purpose = "learning",
    model: GivenModel = None,
    where: Where = "everywhere",
    step_size: Annotated[float | None, typer.Option(help="Step size of the Langevin chains.")] = None,
    chain_length: Annotated[int | None, typer.Option(help="Steps of each Langevin chain.")] = None,
    discard: Annotated[float | None, typer.Option(help="Share of each chain that is discarded.")] = None,
    ids: Ids = "new",
    mark: Annotated[bool, typer.Option("--mark", help="Add a column is_synthetic.")] = False,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
):
    """Over-sample the rare classes of a table. Its own rows are written as they are.

    Example: [b]scorefield resample data.csv --target fraud --drop id -o balanced.csv[/b]
    """
    begin = time.perf_counter()
    check_output(output, force=force)
    with working(f"reading {data}", quiet):
        table = tables.read_labelled(data, target, reading)
    counts = parse_strategy(strategy, table.frame[target].unique())
    chain = {"step_size": step_size, "chain_length": chain_length, "discard": discard}

    from scorefield.cli import commands

    announce("learning and generating rows", quiet)
    result, before, after = commands.resample(
        table.frame, target, strategy=counts, purpose=purpose, model=model, where=where,
        chain={k: v for k, v in chain.items() if v is not None}, columns=reading.columns, seed=seed, mark=mark,
        ids=ids, verbose=verbose(quiet),
    )  # fmt: skip
    with working(f"writing {output}", quiet):
        parts = table.and_rows(output_file(output, table.file), result)
        write_parts(output, parts, like=table.file, replace=force)
    for label in before:
        say(quiet, f"{target}={label}: {before[label]} rows before, {after[label]} after")
    if len(result) == len(table):
        say(quiet, "no rows were added: no class is smaller than asked for; --strategy names counts")
    blank = commands.blank_columns(table.frame, result[len(table) :])
    if blank:
        say(quiet, f"left blank in the new rows: {', '.join(blank)}")
    say(quiet, f"wrote {output} after {time.perf_counter() - begin:.0f} s")


@app.command()
@reads_table
def impute(
    data: Data,
    output: Output,
    reading: Reading,
    draws: Annotated[int, typer.Option(min=1, help="Draws per gap; of several the middle one is taken.")] = 1,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
):
    """Fill the gaps of a table with values that go with the known cells, which stay as they are.

    Example: [b]scorefield impute data.csv -o full.csv[/b]
    """
    check_output(output, force=force)
    with working(f"reading {data}", quiet):
        table = tables.read_table(data, reading)

    from scorefield.cli import commands

    announce("learning and filling gaps", quiet)
    full, left_alone = commands.impute(
        table.frame, n_draws=draws, columns=reading.columns, seed=seed, verbose=verbose(quiet)
    )  # fmt: skip
    cells = table.filled_for(output_file(output, table.file), full)
    write_parts(output, [cells], like=table.file, replace=force)
    before, after = (int(frame.isna().to_numpy().sum()) for frame in (table.frame, full))
    say(quiet, f"filled {before - after} of {before} gaps")
    for name, why in left_alone.items():
        n_left = int(full[name].isna().sum())
        fills = "" if table.frame[name].isna().all() else f"; --as {shlex.quote(f'{name}=category')} fills it too"
        say(quiet, f"left alone: {name}, {n_left} cells ({why}{fills})")
    say(quiet, f"wrote {output}")


@app.command()
@reads_table
def outliers(
    data: Data,
    output: Output,
    reading: Reading,
    contamination: Annotated[
        float | None,
        typer.Option(min=0, max=0.5, help="Share of the rows to flag; without it, rows far below the others."),
    ] = None,
    model: Model = "auto",
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
):
    """Find unusual rows: adds outlier_score (greater is odder, above 0 is an outlier) and is_outlier to a table.

    Columns that --drop names are left out of the output too; --as id=identifier keeps one without reading it.

    Example: [b]scorefield outliers data.csv --contamination 0.05 -o scored.csv[/b]
    """
    check_output(output, force=force)
    with working(f"reading {data}", quiet):
        table = tables.read_table(data, reading)

    from scorefield.cli import commands

    announce("learning and scoring rows", quiet)
    found = commands.outliers(
        table.frame, contamination=contamination, model=model, columns=reading.columns, seed=seed,
        verbose=verbose(quiet),
    )  # fmt: skip
    cells = table.and_columns(output_file(output, table.file), found)
    write_parts(output, [cells], like=table.file, replace=force)
    say(quiet, f"flagged {int(found['is_outlier'].sum())} of {len(found)} rows\nwrote {output}")


@app.command()
@reads_table
def quality(
    real: Annotated[pathlib.Path, typer.Argument(help="The real table, or one that [b]resample --mark[/b] wrote.")],
    reading: Reading,
    synthetic: Annotated[pathlib.Path | None, typer.Argument(help="The generated table, of the same columns.")] = None,
    target: Annotated[str | None, typer.Option(help="Labels: compare the classes that have generated rows.")] = None,
    held_out: Annotated[
        pathlib.Path | None, typer.Option(help="Real rows that the generator has not seen: shows what it remembers.")
    ] = None,
    html: Html = None,
    as_json: Json = False,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
):
    """Check whether generated rows are credible: distributions, correlations, a two-sample test, copies, privacy.

    Example: [b]scorefield quality real.csv synthetic.csv --html quality.html[/b]
    or [b]scorefield quality balanced.csv --target fraud[/b] after [b]resample --mark[/b]
    """
    if html is not None:
        check_output(html, force=force, kinds=(".html",))
    quiet = quiet or as_json
    with working("reading", quiet):
        pair = tables.read_pair(real, synthetic, reading, target)
        fresh = None if held_out is None else tables.read_held_out(held_out, pair[0], reading, target)

    from scorefield.cli import commands
    from scorefield.evaluation.quality import compare_tables

    with working("comparing", quiet):
        columns = reading.columns or None
        found = compare_tables(*pair, fresh, columns=columns, random_state=seed)
        if html is not None:
            commands.write_quality_page(html, found, *pair, columns=columns, replace=force)
    if as_json:
        echo_json(found)
    if not quiet:
        table = Table("column", "kind", "distance", "missing", box=None)
        for column in found.columns:
            gaps = f"{column['gaps']:+.3f}" if column["gaps"] else ""
            table.add_row(escape(str(column["column"])), column["kind"], f"{column['distance']:.3f}", gaps)
        Console().print(table)
        for sentence in (*found.sentences, "Privacy:", *found.privacy.sentences):
            typer.echo(sentence)
        if html is not None:
            typer.echo(f"wrote {html}")


@app.command()
@reads_table
def advise(
    data: Data,
    target: Target,
    reading: Reading,
    minutes: Annotated[
        float,
        typer.Option(
            min=0,
            help="Time to spend; more time gives narrower intervals. One repetition is always finished. 0 leaves out "
            "the remedies that train a ScoreClassifier.",
        ),
    ] = 2.0,
    learner: Annotated[str, typer.Option(help=f"{', '.join(LEARNERS)}.", callback=one_of(LEARNERS))] = "forest",
    metric: Annotated[
        str,
        typer.Option(
            help="What is compared: f1 (decisions: rare rows found, and alarms that are right), average_precision "
            "(ranking: rare rows first), brier or log_loss (probabilities).",
            callback=one_of(METRICS),
        ),
    ] = "f1",
    positive: Annotated[str | None, typer.Option(help="Label of the class to find; by default the rarest.")] = None,
    groups: Groups = None,
    html: Html = None,
    as_json: Json = False,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
):
    """Tell whether over-sampling is worth it on a table: compares remedies and prints code for the best.

    Example: [b]scorefield advise data.csv --target fraud --html advice.html[/b]
    """
    if html is not None:
        check_output(html, force=force, kinds=(".html",))
    table = tables.read_labelled(data, target, reading)
    tables.check_groups(groups, table.frame, target)
    if positive is not None:
        one_of(tuple(map(str, table.frame[target].unique())))(positive)

    from scorefield.cli import commands

    quiet = quiet or as_json
    time_given = f"about {minutes:g} minutes" if minutes else "one repetition of the quick ones"
    announce(f"comparing remedies, {time_given}", quiet)
    with progress_bar(error_console(), quiet, left=True) as bar:
        task = bar.add_task("comparing remedies", total=None)
        advice = commands.advise(
            table.frame,
            target,
            learner=learner,
            metric=metric,
            positive=positive,
            groups=groups,
            minutes=minutes,
            columns=reading.columns,
            seed=seed,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if as_json:
        echo_json(advice)
    say(quiet, f"{advice}\n\n{advice.code}")
    if html is not None:
        commands.write_advice_page(html, advice, replace=force)
        say(quiet, f"wrote {html}")


for command in (*stored.COMMANDS, study.reproduce, study.benchmark, study.demo):
    app.command()(command)
