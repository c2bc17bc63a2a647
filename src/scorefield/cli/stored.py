"""Commands about model files: `fit`, `distill`, `predict`, `sample`, `explain`, `drift` and others."""

import dataclasses
import pathlib
from typing import Annotated

import typer

from scorefield.cli.console import announce, echo_json, error_console, progress_bar, say, verbose, working
from scorefield.cli.options import (
    TAUGHT,
    Data,
    DataOrFolder,
    Force,
    Groups,
    Ids,
    Json,
    ModelFile,
    Output,
    Quiet,
    Seed,
    Target,
    one_of,
    reads_table,
    words,
)
from scorefield.data import tables
from scorefield.data.files import check_output, write_parts
from scorefield.data.formats import Reading, output_file


def _check_model_file(path):
    if not path.is_file():
        raise FileNotFoundError(f"Expected a model file, but {path} does not exist.")


@reads_table
def fit(
    data: DataOrFolder,
    target: Target,
    output: Output,
    reading: Reading,
    stream: Annotated[bool, typer.Option("--stream", help="Read Parquet in parts, whatever its size.")] = False,
    groups: Groups = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
):
    """Fit a score-based classifier to a table and store it.

    A folder of Parquet files, or one above 256 MB, is read in parts and need not fit into memory;
    with gaps or columns that are not numbers, up to 100,000 random rows of it are learned from.

    Example: [b]scorefield fit data.csv --target fraud --as zip=category -o model.skops[/b]
    """
    check_output(output, force=force, kinds=(".skops",))
    in_parts = stream or tables.is_large(data)
    if in_parts and (reading != Reading() or groups is not None):
        raise ValueError(
            f"Expected no --as, --drop, --na or --groups for {data}, which is read in parts, got some; change the "
            "file instead."
        )
    if not in_parts:
        with working(f"reading {data}", quiet):
            table = tables.read_labelled(data, target, reading)
            tables.check_groups(groups, table.frame, target)

    from scorefield.cli import commands
    from scorefield.files.model_files import write_stored

    announce("learning", quiet)
    if in_parts:
        stored, n = commands.fit_parquet(data, target, seed=seed, verbose=verbose(quiet))
    else:
        stored = commands.fit(
            table.frame, target, reading=reading, file=table.file, groups=groups, seed=seed, verbose=verbose(quiet)
        )  # fmt: skip
        n = len(table)
    model = stored["model"]
    judged = "" if in_parts or quiet else commands.judged(model, table.frame, target, seed, groups)
    vars(model).pop("held_out_proba_", None)  # of the fitted rows, which the file does not hold either
    write_stored(output, stored, replace=force)
    say(quiet, f"learned {len(model.classes_)} classes from {n} rows of {model.n_features_in_} columns{judged}")
    say(quiet, f"wrote {output}")


@reads_table
def distill(
    data: Data,
    target: Target,
    output: Output,
    reading: Reading,
    estimator: Annotated[
        str, typer.Option(help=f"The learner: {', '.join(TAUGHT)}.", callback=one_of(TAUGHT))
    ] = "boosting",
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
):
    """Teach an ordinary learner what a score-based classifier knows, and store it.

    The classifier makes new rows and tells the learner how probable each class is. The learner predicts faster, and
    better than it would alone on most tables with a rare class; [b]sample[/b], [b]explain[/b] and [b]export[/b] need a
    model of [b]fit[/b].

    Example: [b]scorefield distill data.csv --target fraud --estimator forest -o model.skops[/b]
    """
    check_output(output, force=force, kinds=(".skops",))
    with working(f"reading {data}", quiet):
        table = tables.read_labelled(data, target, reading)

    from scorefield.cli import commands
    from scorefield.files.model_files import write_stored

    announce("learning and teaching", quiet)
    stored = commands.distill(
        table.frame, target, estimator=estimator, reading=reading, file=table.file, seed=seed, verbose=verbose(quiet)
    )  # fmt: skip
    write_stored(output, stored, replace=force)
    model = stored["model"]
    say(quiet, f"taught {model.kind} by {len(table)} rows and {model.n_new_rows_} new ones")
    say(quiet, f"wrote {output}")


@reads_table
def predict(
    model: ModelFile,
    data: DataOrFolder,
    output: Output,
    reading: Reading,
    keep: Annotated[list[str] | None, typer.Option(help="Columns to carry over, such as id,name, or all.")] = None,
    force: Force = False,
    quiet: Quiet = False,
):
    """Score a table: prediction, probability of each class and log density, in the order of its rows.

    Example: [b]scorefield predict model.skops new.csv --keep id -o scored.csv[/b]
    """
    check_output(output, force=force)
    _check_model_file(model)
    file = tables.open_first(data, reading)
    kept = tables.kept_names(file, words(keep))

    from scorefield.cli import commands
    from scorefield.files.model_files import load_classifier

    stored = load_classifier(model)
    like = commands.spelling_labels(stored, output_file(output, file), f"predicted_{stored['target']}")
    reading = commands.reading_for(stored, reading)
    with progress_bar(error_console(), quiet) as bar:
        task = bar.add_task("rows", total=None)

        def scored():
            for part in tables.read_parts(data, reading, commands.features(stored), kept):
                yield part.and_columns(like, commands.scores(stored, part.frame), kept)
                bar.advance(task, len(part))

        n = write_parts(output, scored(), like=file, replace=force)
    say(quiet, f"scored {n} rows\nwrote {output}")


def sample(
    model: ModelFile,
    output: Output,
    label: Annotated[str | None, typer.Option(help="Class of all rows; without it, classes by their shares.")] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Rows to generate.")] = 1000,
    given: Annotated[
        list[str] | None,
        typer.Option(help="What rows are asked for: age=40, income=20000..50000 or city=A,B. May be repeated."),
    ] = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(help="What columns keep in every row: 'start <= end' or 'total == a + b'. May be repeated."),
    ] = None,
    ids: Ids = "new",
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
):
    """Generate rows: of one class or of all, and of those that are asked for.

    Example: [b]scorefield sample model.skops --label 1 -n 1000 -o rows.csv[/b]
    or [b]scorefield sample model.skops --given age=40 --given income=20000..50000 -o rows.csv[/b]
    """
    check_output(output, force=force)
    _check_model_file(model)

    from scorefield.cli import commands
    from scorefield.files.model_files import load_classifier

    stored = commands.check_has_energy(load_classifier(model), "generate rows")
    with working("sampling", quiet):
        table = commands.sample(stored, label, n, seed, ids, given=given, constraints=constraint)
    write_parts(output, [table], like=commands.file_like_fitted(stored), replace=force)
    blank = [str(name) for name in table.columns if table[name].isna().all()]
    if blank:
        say(quiet, f"left blank: {', '.join(blank)}")
    say(quiet, f"wrote {output}")


@reads_table
def explain(
    model: ModelFile,
    data: Data,
    reading: Reading,
    label: Annotated[str | None, typer.Option(help="Class to explain: the second, or the predicted one.")] = None,
    target: Annotated[str | None, typer.Option(help="Show the nearest credible rows of this class too.")] = None,
    fixed: Annotated[list[str] | None, typer.Option(help="Columns that --target may not change, such as age.")] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Rows of --target to show for each row.")] = 3,
    output: Annotated[
        pathlib.Path | None, typer.Option("--output", "-o", help="Write the contributions of all columns.")
    ] = None,
    as_json: Json = False,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
):
    """Tell why rows are classified as they are: what each column adds to the log odds.

    With --target also which credible changes would put them into another class.

    Example: [b]scorefield explain model.skops row.csv --target no --fixed age,sex[/b]
    """
    if output is not None:
        check_output(output, force=force)
    quiet = quiet or as_json
    _check_model_file(model)

    from scorefield.cli import commands
    from scorefield.explanations.explanation import SHOWN_ROWS
    from scorefield.explanations.explanation import explain as explain_rows
    from scorefield.files.model_files import load_classifier

    found = commands.check_has_energy(load_classifier(model), "explain rows")
    label, wanted = (commands.known_label(found, *given) for given in ((label, "--label"), (target, "--target")))
    rows = commands.rows_for(found, data, reading)
    shown = rows if output is not None or as_json else rows[:SHOWN_ROWS]
    announce("explaining", quiet)
    with progress_bar(error_console(), quiet) as bar:
        task = bar.add_task("explaining", total=len(shown))
        explained = explain_rows(
            found["model"], shown, label, progress=lambda done, total: bar.update(task, completed=done)
        )
    near = None
    if wanted is not None:
        with working("looking for near rows", quiet):
            near = commands.counterfactuals(found, rows, wanted, words(fixed), n, seed)
    if output is not None:
        like = commands.spelling_labels(found, output_file(output), "label")
        write_parts(output, [commands.contributions(explained)], like=like, replace=force)
    if as_json:
        echo_json(commands.explained(explained, near))
        return
    typer.echo(explained)
    if len(shown) < len(rows):
        typer.echo(f"... and {len(rows) - len(shown)} more rows; --output writes the contributions to all of them")
    if near is not None:
        typer.echo(f"nearest credible rows of {target}:\n{near}")
    if output is not None:
        say(quiet, f"wrote {output}")


@reads_table
def drift(
    model: ModelFile,
    new: Annotated[pathlib.Path, typer.Argument(help="New rows, with or without labels.")],
    reading: Reading,
    reference: Annotated[
        pathlib.Path, typer.Option(help="Rows from before the change that the model was not fitted to.")
    ],
    level: Annotated[float, typer.Option(min=0, max=1, help="Greatest rate of false alarms.")] = 0.05,
    as_json: Json = False,
    seed: Seed = 0,
    quiet: Quiet = False,
):
    """Tell whether new rows differ from earlier ones: in which columns, or by other shares of the classes.

    Example: [b]scorefield drift model.skops new.csv --reference held_out.csv[/b]
    """
    quiet = quiet or as_json
    _check_model_file(model)

    from scorefield.cli import commands
    from scorefield.evaluation.drift import drift as compare
    from scorefield.files.model_files import load_classifier

    stored = commands.check_has_energy(load_classifier(model), "look for drift")
    before, after = (commands.rows_for(stored, data, reading) for data in (reference, new))
    with working("comparing", quiet):
        found = compare(stored["model"], after, before, level=level, random_state=seed)
    if as_json:
        echo_json(dataclasses.replace(found, probabilities=None))
        return
    typer.echo(found)


def export(
    model: ModelFile,
    output: Annotated[pathlib.Path, typer.Argument(help="File to write: .onnx or .json.")],
    force: Force = False,
    quiet: Quiet = False,
):
    """Write a stored model as an ONNX graph, or as plain arrays in JSON, for other programs.

    Example: [b]scorefield export model.skops model.onnx[/b]
    """
    check_output(output, force=force, kinds=(".onnx", ".json"))
    _check_model_file(model)

    from scorefield.cli import commands
    from scorefield.export.export import export_json, export_onnx
    from scorefield.files.model_files import load_classifier

    stored = commands.check_has_energy(load_classifier(model), "export it")
    write = export_onnx if output.suffix == ".onnx" else export_json
    write(stored["model"], output, replace=force)
    say(quiet, f"wrote {output}")


def info(model: ModelFile, as_json: Json = False):
    """Describe a stored model. Example: [b]scorefield info model.skops[/b]"""
    _check_model_file(model)

    from scorefield.cli import commands
    from scorefield.files.model_files import load_classifier

    found = commands.describe(load_classifier(model))
    if as_json:
        echo_json(found)
        return
    for name, value in found.items():
        typer.echo(f"{name}: {value}")


COMMANDS = (fit, distill, predict, sample, explain, drift, export, info)
