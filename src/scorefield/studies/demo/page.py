"""The page of the demonstration: tables, three pictures and the commands to go on with."""

import numpy as np

from scorefield.data.files import write_whole
from scorefield.display.displays import COLOURS
from scorefield.display.html import page, picture, table, tag
from scorefield.evaluation.ranks import corrected_interval, corrected_share
from scorefield.evaluation.remedies import NOTHING
from scorefield.studies.demo.penguins import CLASSIFIER, KEPT, OURS, RARE, TARGET, TAUGHT, TEST_SIZE

TITLE = "scorefield in two minutes"
SHOWN_ROWS = 5
SIZE, DPI = (4.6, 4.2), 160  # narrow, so that letters stay readable on a phone
TEST_SHARE = TEST_SIZE / (1 - TEST_SIZE)
MEASURES = {"average_precision": "average precision", "brier": "Brier score"}
BEST = {"average_precision": "more is better", "brier": "less is better"}
SIDE_BY_SIDE = "display: flex; flex-wrap: wrap; gap: 0 2rem"
COMMANDS = """scorefield columns your.csv
scorefield resample your.csv --target label -o balanced.csv --mark
scorefield advise your.csv --target label --html advice.html"""


def write_page(path, penguins, description, generated, rows):
    """Write the page and return its path."""
    n_splits = len({row["seed"] for row in rows})
    sections = [
        _in_short(generated, rows, n_splits),
        _table(penguins, description),
        _rows(penguins, generated),
        _credibility(generated),
        _comparison(rows, n_splits),
        _calibration(rows, n_splits),
        tag("section", tag("h2", "Your own table"), tag("pre", COMMANDS)),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, page(TITLE, [tag("h1", TITLE), *sections]))
    return path


def _in_short(generated, rows, n_splits):
    """The outcome in three lines, made from the numbers below them."""
    brier = {
        learner: corrected_share(_values(rows, (learner, NOTHING), "brier"), TEST_SHARE)
        for learner in (CLASSIFIER, "forest", "boosting")
    }
    gains = "; ".join(
        f"{learner} {_gain(rows, (learner, TAUGHT), (learner, NOTHING), 'average_precision')}"
        for learner in ("forest", "boosting")
    )
    lines = (
        f"{len(generated.rows)} generated rows of a rare species: boosting tells them from unseen real ones with AUC "
        f"{_auc(generated.against_unseen)}, those of SMOTENC with {_auc(generated.interpolated)}; .5 is chance.",
        f"Taught by {CLASSIFIER} ({TAUGHT}), learners change in average precision by: {gains} ({n_splits} splits). "
        "An interval that includes 0 proves nothing.",
        "Brier score, less is better: " + ", ".join(f"{name} {found}" for name, found in brier.items()) + ".",
    )
    said = (
        "scorefield demo computed this page from a table in the package. The table was taken for its text, its empty "
        "cells, its size and its licence, not for a result on it. It is an easy table, on which little is left to "
        "gain, and results on it are optimistic, as it helped to choose the defaults for mixed tables. scorefield "
        "benchmark learning asks the same of many tables."
    )
    return tag("section", tag("p", said), tag("ul", *(tag("li", line) for line in lines)))


def _table(penguins, description):
    counts = penguins[TARGET].value_counts()
    gaps = int(penguins.isna().to_numpy().sum())
    said = (
        f"{len(penguins)} penguins of Palmer Station, Antarctica (palmerpenguins, CC0), with {gaps} empty cells: "
        + ", ".join(f"{n} {name}" for name, n in counts.items())
        + f". To make {RARE} rare, {KEPT} of its {counts[RARE]} rows are kept, chosen at random. "
        "Text and missing values are taken as they are."
    )
    titles, *lines = [[tag("span", cell, style="white-space: nowrap") for cell in line] for line in description.cells()]
    return tag("section", tag("h2", "The table"), tag("p", said), table("describe_columns(penguins)", titles, lines))


def _rows(penguins, generated):
    parts = [
        table(f"{SHOWN_ROWS} of {len(part)} {name} rows", [c.replace("_", " ") for c in part.columns], _cells(part))
        for name, part in (("real", generated.seen), ("generated", generated.rows))
    ]
    said = (
        f'{OURS}(purpose="sharing") learned all columns of the {len(generated.table)} rows together and drew '
        f"{len(generated.rows)} new rows of {RARE}, in {generated.seconds:.0f} seconds."
    )
    caption = f"{len(generated.rows)} generated rows of {RARE}, the {KEPT} they were learned from, and those left out."
    return tag(
        "section",
        tag("h2", "Generated rows"),
        tag("p", said),
        tag("div", *parts, style=SIDE_BY_SIDE),
        picture(draw_rows(penguins, generated), caption, dpi=DPI),
    )


def _cells(part):
    return [[_cell(value) for value in row] for row in part.head(SHOWN_ROWS).itertuples(index=False)]


def _cell(value):
    return f"{value:g}" if isinstance(value, float) else value


def draw_rows(penguins, generated):
    """Bill length and depth of real and generated rows."""
    figure, ax = _axes("bill length, mm", "bill depth, mm")
    others = penguins[penguins[TARGET] != RARE]
    parts = (
        ("other species", others, {"color": "0.82", "s": 12}),
        ("generated", generated.rows, {"color": COLOURS[1], "s": 20, "alpha": 0.6}),
        ("real, left out", generated.unseen, {"facecolors": "none", "edgecolors": "black", "s": 22}),
        ("real, learned from", generated.seen, {"color": "black", "s": 22}),
    )
    for name, part, style in parts:
        ax.scatter(part["bill_length_mm"], part["bill_depth_mm"], label=name, linewidths=0.8, **style)
    ax.set_title(f"Rows of {RARE}, real and generated")
    ax.legend(fontsize=8, loc="lower right")
    return figure


def _auc(found):
    return f"{found.auc:.2f} [{found.auc_range[0]:.2f}, {found.auc_range[1]:.2f}]"


def _credibility(generated):
    rows = [
        [name, _auc(found)] for name, found in ((OURS, generated.against_unseen), ("SMOTENC", generated.interpolated))
    ]
    drift, *_, told, _ = generated.against_unseen.sentences
    said = (
        f"Beside the {len(generated.unseen)} rows of {RARE} that were left out: {drift} {told} "
        f"Beside the {KEPT} that it learned from: {generated.against_seen.sentences[-1]}"
    )
    head = ["generated by", "AUC of gradient boosting that tells them from real rows"]
    return tag(
        "section",
        tag("h2", "Are they credible?"),
        tag("p", said),
        table("compare_tables(left_out, generated); .5 is chance, 1 is certainty", head, rows),
    )


def _arms(rows):
    """(learner, remedy) in order of appearance."""
    return list(dict.fromkeys((row["learner"], row["remedy"]) for row in rows))


def _values(rows, arm, measure):
    return [row[measure] for row in rows if (row["learner"], row["remedy"]) == arm]


def named(learner, remedy):
    """Name of a learner with a remedy."""
    if remedy == TAUGHT:
        return f"{learner}, taught by {CLASSIFIER}"
    return learner if remedy == NOTHING else f"{remedy}, then {learner}"


def _ordered(arms):
    """Arms of one learner together, the classifier of this library last."""
    return [arm for learner in dict.fromkeys(arm[0] for arm in arms) for arm in arms if arm[0] == learner]


def _comparison(rows, n_splits):
    arms = _ordered(_arms(rows))
    lines = [
        [named(*arm), *(str(corrected_share(_values(rows, arm, m), TEST_SHARE)) for m in MEASURES)] for arm in arms
    ]
    said = (
        f"{n_splits} times {KEPT} rows of {RARE} were drawn and half of the table was set aside to test on. "
        "Over-samplers raise each species to the size of the largest before a forest or gradient boosting "
        f"(scikit-learn's, missing values filled by medians); {TAUGHT} teaches both by new rows with the "
        f"probabilities of {CLASSIFIER}, which takes the table with its missing values. Both measures are "
        f"those of {RARE} against the rest. Intervals are at 95 % and allow for rows that splits share."
    )
    return tag(
        "section",
        tag("h2", "Do they help?"),
        tag("p", said),
        picture(draw_comparison(rows, n_splits), f"Means over {n_splits} splits with 95 % intervals.", dpi=DPI),
        table(f"Means over {n_splits} splits", ["", *MEASURES.values()], lines),
        table("Gains, with 95 % intervals; one that includes 0 proves nothing", ["", *MEASURES.values()], _gains(rows)),
    )


def _gains(rows):
    """Paired gains of this library's arms; positive is better."""
    pairs = [((learner, arm), (learner, NOTHING)) for arm in (OURS, TAUGHT) for learner in ("forest", "boosting")]
    pairs += [((CLASSIFIER, NOTHING), (learner, NOTHING)) for learner in ("forest", "boosting")]
    return [
        [f"{named(*first)}, over {named(*second)}", *(_gain(rows, first, second, measure) for measure in MEASURES)]
        for first, second in pairs
    ]


def _gain(rows, first, second, measure):
    sign = -1 if measure == "brier" else 1
    gaps = sign * (np.array(_values(rows, first, measure)) - np.array(_values(rows, second, measure)))
    return corrected_interval(gaps, TEST_SHARE).text("+")


def draw_comparison(rows, n_splits):
    """Both measures of every arm with their intervals, and the single splits."""
    import matplotlib.pyplot as plt

    arms = _ordered(_arms(rows))[::-1]
    figure, axes = plt.subplots(2, 1, figsize=(SIZE[0], 1.5 * SIZE[1]), layout="constrained")
    for ax, (measure, name) in zip(axes, MEASURES.items(), strict=True):
        for place, arm in enumerate(arms):
            values = _values(rows, arm, measure)
            found = corrected_share(values, TEST_SHARE)
            colour = COLOURS[1] if {OURS, TAUGHT, CLASSIFIER} & set(arm) else COLOURS[0]
            ax.scatter(values, [place + 0.25] * len(values), color="0.6", s=6)
            ax.plot([found.low, found.high], [place, place], color=colour, linewidth=2)
            ax.scatter([found.mean], [place], color=colour, s=30, zorder=3)
        ax.set_yticks(range(len(arms)), [named(*arm).replace(", ", ",\n") for arm in arms], fontsize=8)
        ax.set_xlabel(f"{name} of {RARE}: {BEST[measure]}")
        ax.grid(axis="x", color="0.92")
    axes[0].set_title(f"Mean over {n_splits} splits, 95 % interval, single splits in grey", fontsize=9, loc="right")
    return figure


def _calibration(rows, n_splits):
    lines = []
    for arm in _ordered(_arms(rows)):
        announced, found = (np.concatenate(_values(rows, arm, name)) for name in ("announced", "found"))
        lines.append(
            [named(*arm), f"{announced.sum():.1f}", found.sum(), f"{np.mean(_values(rows, arm, 'log_loss')):.3f}"]
        )
    head = ["", f"{RARE}s expected", "found", "log loss, all species"]
    announced = np.concatenate(_values(rows, (CLASSIFIER, NOTHING), "announced"))
    between = np.sum(np.abs(announced - 0.5) < 0.4)
    caption = (
        f"Shares of {RARE} among test rows with like probabilities, {n_splits} splits together. Points in the middle "
        f"stand for few rows: {CLASSIFIER} gives {between} of {len(announced)} between .1 and .9."
    )
    return tag(
        "section",
        tag("h2", "Can the probabilities be trusted?"),
        tag(
            "p",
            "The sum of a model's probabilities is the number that it expects. Over-sampling raises it; teaching keeps "
            "the frequencies. PriorCorrectedClassifier takes new ones back where every drawn row was kept.",
        ),
        table(f"Test rows of {n_splits} splits together", head, lines),
        picture(draw_calibration(rows), caption, dpi=DPI),
    )


def draw_calibration(rows):
    """Announced probabilities and observed shares of the arms without over-sampling."""
    from sklearn.calibration import CalibrationDisplay

    figure, ax = _axes("probability", "share")
    colours = dict(zip(("forest", "boosting", CLASSIFIER), COLOURS, strict=False))
    for learner, colour in colours.items():
        found, announced = (np.concatenate(_values(rows, (learner, NOTHING), name)) for name in ("found", "announced"))
        CalibrationDisplay.from_predictions(found, announced, n_bins=4, name=learner, ax=ax, color=colour)
    ax.set(xlabel=f"probability of {RARE}", ylabel="share in the test rows", title="Calibration")
    ax.legend(fontsize=8)
    return figure


def _axes(x, y):
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=SIZE, layout="constrained")
    ax.set(xlabel=x, ylabel=y)
    return figure, ax
