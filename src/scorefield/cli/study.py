"""Commands that run experiments: `reproduce`, `benchmark` and `demo`."""

import pathlib
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from scorefield.cli.console import error_console, progress_bar
from scorefield.cli.options import Jobs, Out


def _listed(text, allowed, what):
    """Names of a comma-separated option; None where it is not given."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in allowed]
    if unknown:
        raise typer.BadParameter(f"no {what} {unknown[0]!r}; there are {', '.join(allowed)}.")
    return names


def _limited(tasks, tables, arms, learners):
    """Tasks of the chosen tables, with the chosen parts of those that can be run in parts."""
    found = []
    for experiment, seed, config in tasks:
        if tables is not None and config["tables"][seed % len(config["tables"])] not in tables:
            continue
        if "parts" in config:
            parts = [part for part in config["parts"]
                     if (arms is None or part[0] in arms) and (learners is None or part[1] in learners)]  # fmt: skip
            if not parts:
                continue  # an arm of numeric tables alone
            config = {**config, "parts": parts}
        found.append((experiment, seed, config))
    return found


def _run_study(registry, names, *, out, seeds, quick, jobs, limits=None):
    """Run the named experiments of a registry (a module with EXPERIMENTS and STUDY) and write their report."""
    import matplotlib

    from scorefield.studies.engine.page import write_report
    from scorefield.studies.engine.runs import run_all

    matplotlib.use("Agg")
    chosen = [experiment for name, experiment in registry.EXPERIMENTS.items() if name in names]
    counts = {e.name: e.count(seeds, quick) for e in chosen}
    tasks = [(e, seed, e.settings(quick)) for e in chosen for seed in range(counts[e.name])]
    if limits:
        tasks = _limited(tasks, **limits)
    with progress_bar(error_console()) as bar:
        task = bar.add_task("seeds", total=len(tasks))

        def finished(done):
            bar.update(task, advance=1, description=f"{done[0].name}, seed {done[1]}")

        failures = run_all(tasks, out, jobs=jobs, finished=finished)
    path, verdicts = write_report(registry.STUDY, chosen, out, seeds=seeds, quick=quick)
    typer.echo(f"{verdicts}\nwrote {path}")
    if failures:
        raise RuntimeError(f"{len(failures)} of {len(tasks)} seeds failed and are not in the report; {failures[0]}")


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


def benchmark(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="oversampling, classifiers, mixed, mixed-oversampling (none is all four), learning, mixed-learning, "
            "tuned, peers, ablation, classifier-peers."
        ),
    ] = None,
    out: Out = pathlib.Path("report"),
    seeds: Annotated[int | None, typer.Option(min=1, help="Splits to run: two of each table are a repetition.")] = None,
    quick: Annotated[bool, typer.Option(help="Few small tables, one split.")] = False,
    tables: Annotated[str | None, typer.Option(help="Tables by name, with commas; all if not given.")] = None,
    arms: Annotated[
        str | None,
        typer.Option(
            help="For learning and mixed-learning: arms by name, with commas, or [b]essential[/b]. Further ones can be "
            "added later."
        ),
    ] = None,
    learners: Annotated[
        str | None, typer.Option(help="Likewise: learners by name, with commas, or [b]five[/b].")
    ] = None,
    jobs: Jobs = 2,
):
    """Compare over-samplers and classifiers on 22 real imbalanced tables, on mixed tables and on several classes.

    A stopped run continues where it was. Example: [b]scorefield benchmark --quick[/b]
    """
    from scorefield.studies.benchmark import learning, registry
    from scorefield.studies.benchmark.mixed_tables import has_mixed_tables

    if not names:
        names = list(registry.DEFAULT)
        if not has_mixed_tables():
            names = [name for name in names if not name.startswith("mixed")]
            typer.echo("mixed tables are left out: the folder mixed of SCOREFIELD_DATA is not there.", err=True)
    unknown = sorted(set(names) - set(registry.EXPERIMENTS))
    if unknown:
        raise typer.BadParameter(f"no benchmark {unknown[0]!r}; there are {', '.join(registry.EXPERIMENTS)}.")
    chosen = [registry.EXPERIMENTS[name] for name in names]
    limits = {
        "tables": _listed(tables, sorted({name for e in chosen for name in e.settings(quick)["tables"]}), "table"),
        "arms": learning.ESSENTIAL if arms == "essential" else _listed(arms, learning.NUMERIC_ARMS, "arm"),
        "learners": learning.FIVE if learners == "five" else _listed(learners, learning.LEARNERS, "learner"),
    }
    _run_study(registry, names, out=out, seeds=seeds, quick=quick, jobs=jobs, limits=limits)


def demo(out: Annotated[pathlib.Path, typer.Option(help="Folder for the page.")] = pathlib.Path("demo")):
    """From a small real table to rare rows, a classifier and a page, in two minutes. Example: [b]scorefield demo[/b]"""
    import matplotlib

    from scorefield.studies.demo.story import tell

    matplotlib.use("Agg")
    with progress_bar(error_console()) as bar:
        task = bar.add_task("splits", total=None, visible=False)
        tell(
            out,
            say=typer.echo,
            progress=lambda done, total: bar.update(task, completed=done, total=total, visible=True),
        )
