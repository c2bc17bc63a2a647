"""Sections of the benchmark's report: means, ranks with a critical difference, paired comparisons, claims."""

import math
from typing import Any

import numpy as np

from scorefield.display.displays import COLOURS
from scorefield.evaluation.metrics import LOWER_IS_BETTER, NAMES
from scorefield.evaluation.ranks import (
    EQUIVALENT,
    corrected_interval,
    critical_difference,
    draw_critical_difference,
    friedman,
    mean_ranks,
    signed_rank,
    wins_ties_losses,
)
from scorefield.evaluation.remedies import NOTHING, THRESHOLD
from scorefield.evaluation.statistics import FAILS, HOLDS, WITHIN_NOISE, estimate
from scorefield.studies.benchmark.arms import LABEL_FREE_CLASSIFIER, OUR_CLASSIFIER, OURS, OURS_TUNED
from scorefield.studies.engine.experiment import Claim, Figure, Section, Table

RANKED = ("average_precision", "roc_auc", "f1", "f1_tuned", "brier", "log_loss")
METRICS = {name: NAMES[name] for name in (*RANKED, "seconds", "megabytes")} | {"f1": "F1 at .5"}
REFERENCES = (NOTHING, THRESHOLD, "noise .3", "SMOTE", "ADASYN")
RIVALS = ("naive Bayes", "QDA", "KDE", "GMM", "paper's")


class Scores:
    """Rows of one learner as arrays (tables, arms) of means over splits."""

    def __init__(self, rows):
        self.rows = rows
        self.arms = list(dict.fromkeys(row["arm"] for row in rows))
        self.cells: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
        for row in rows:
            self.cells.setdefault((row["table"], row["arm"]), {})[row["split"]] = row
        names = dict.fromkeys(row["table"] for row in rows)
        self.tables = [name for name in names if all(self.cells.get((name, arm)) for arm in self.arms)]

    def of(self, metric):
        """Means of a measure, shape (tables, arms)."""
        return np.array([[self.mean(table, arm, metric) for arm in self.arms] for table in self.tables])

    def mean(self, table, arm, metric):
        values = [row[metric] for row in self.cells[table, arm].values() if row.get(metric) is not None]
        return float(np.mean(values)) if values else math.nan

    def column(self, arm, metric):
        return self.of(metric)[:, self.arms.index(arm)]

    def gain(self, arm, reference, metric):
        """Gain of an arm over a reference on each table; positive is better."""
        sign = -1 if metric in LOWER_IS_BETTER else 1
        return sign * (self.column(arm, metric) - self.column(reference, metric))

    def ranks(self, metric):
        return mean_ranks(self.of(metric), lower_is_better=metric in LOWER_IS_BETTER)

    def rank(self, arm, metric):
        return float(self.ranks(metric)[self.arms.index(arm)])

    def per_table(self, arm, reference, metric):
        """Corrected interval of the gain on each table."""
        sign = -1 if metric in LOWER_IS_BETTER else 1
        found = {}
        for table in self.tables:
            first, second = self.cells[table, arm], self.cells[table, reference]
            common = sorted(first.keys() & second.keys())
            gaps = [sign * (first[k][metric] - second[k][metric]) for k in common]
            found[table] = corrected_interval(gaps, first[common[0]]["test_share"])
        return found


def _means_table(scores, caption):
    known = [metric for metric in METRICS if not np.isnan(scores.of(metric)).all()]
    rows = []
    for arm in scores.arms:
        means = {metric: np.nanmean(scores.column(arm, metric)) for metric in known}
        cells = [f"{mean:.{1 if metric in ('seconds', 'megabytes') else 3}f}" for metric, mean in means.items()]
        refused = sum("refused" in row for row in scores.rows if row["arm"] == arm)
        rows.append([f"{arm} (refused {refused} times: nothing done)" if refused else arm, *cells])
    return Table(caption, ["arm", *(METRICS[metric] for metric in known)], rows)


def _ranks_table(scores, caption):
    columns = {metric: scores.ranks(metric) for metric in RANKED}
    order = np.argsort(columns["average_precision"])
    rows = [[scores.arms[i], *(f"{columns[metric][i]:.2f}" for metric in RANKED)] for i in order]
    chance = [f"{friedman(scores.of(metric)):.1e}" for metric in RANKED]
    rows.append(["chance of such ranks if all were alike (Friedman)", *chance])
    return Table(caption, ["arm", *(METRICS[metric] for metric in RANKED)], rows)


def _paired_table(scores, caption, arms, references, metrics=("average_precision", "f1_tuned", "brier")):
    rows = []
    for arm in arms:
        for reference in references:
            if arm == reference or not {arm, reference} <= set(scores.arms):
                continue
            cells = []
            for metric in metrics:
                gain = scores.gain(arm, reference, metric)
                chance = signed_rank(gain)
                counts = " / ".join(map(str, wins_ties_losses(gain)))
                cells.append(f"{gain.mean():+.3f}, p {chance:.3f}, {counts}")
            sure = scores.per_table(arm, reference, "average_precision").values()
            better, worse = sum(gap.low > 0 for gap in sure), sum(gap.high < 0 for gap in sure)
            rows.append([f"{arm} against {reference}", *cells, f"{better} / {worse}"])
    columns = ["comparison", *(f"gain in {METRICS[metric]}" for metric in metrics), "tables surely better / worse"]
    return Table(caption, columns, rows)


def _critical_difference_figure(scores, name, caption, metric="average_precision"):
    def draw():
        import matplotlib.pyplot as plt

        figure, ax = plt.subplots(figsize=(9, 0.9 + 0.24 * len(scores.arms)), layout="constrained")
        difference = critical_difference(len(scores.arms), len(scores.tables))
        draw_critical_difference(scores.arms, scores.ranks(metric), difference, ax)
        return figure

    return Figure(name, caption, draw)


def _gains_figure(by_learner, name, caption, metric="average_precision"):
    """Mean gains over doing nothing with 95 % intervals over tables, one panel per learner."""

    def draw():
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, len(by_learner), figsize=(2.6 * len(by_learner), 4.6), sharey=True,
                                    layout="constrained", squeeze=False)  # fmt: skip
        arms = list(dict.fromkeys(arm for scores in by_learner.values() for arm in scores.arms if arm != NOTHING))
        for ax, (learner, scores) in zip(axes[0], by_learner.items(), strict=True):
            for place, arm in enumerate(arms):
                if arm not in scores.arms:
                    continue
                gain = scores.gain(arm, NOTHING, metric)
                found = estimate(gain)
                reach = found.high - found.mean if found.n > 1 else 0
                color = COLOURS[arm in (OURS, OURS_TUNED)]
                ax.errorbar(gain.mean(), place, xerr=reach, fmt="o", color=color, markersize=4)
            ax.axvline(0, color="0.6", linewidth=1)
            ax.set(title=learner, yticks=range(len(arms)), yticklabels=arms, xlabel=f"gain, {METRICS[metric]}")
        axes[0, 0].invert_yaxis()
        return figure

    return Figure(name, caption, draw)


def _verdict(point, sure):
    return (HOLDS if sure else WITHIN_NOISE) if point else FAILS


def _better_rank_claim(scores, learner, arm, rival, metric):
    """Claim of a better mean rank; it holds if the signed-rank test over tables agrees."""
    own, other = scores.rank(arm, metric), scores.rank(rival, metric)
    chance = signed_rank(scores.gain(arm, rival, metric), alternative="greater")
    text = f"{arm} has a better mean rank than {rival} in {METRICS[metric]}, {learner}."
    evidence = f"mean ranks {own:.2f} and {other:.2f}; signed-rank p {chance:.3f} over {len(scores.tables)} tables"
    return Claim(text, _verdict(own < other, chance < 0.05), evidence)


def _not_worse_claim(scores, learner, arm, rival, metric):
    """Claim of no loss above the band of equivalence; it holds if the interval over tables excludes one."""
    gains = scores.gain(arm, rival, metric)
    gain, chance = estimate(gains), signed_rank(gains, alternative="less")
    text = f"{arm} is no worse than {rival} in {METRICS[metric]}, {learner}."
    evidence = f"mean gain {gain.text('+')}, signed-rank p of a loss {chance:.3f}"
    return Claim(text, _verdict(chance >= 0.05 and gain.mean > -EQUIVALENT, gain.low > -EQUIVALENT), evidence)


def scores_by_learner(rows):
    """Learner to scores."""
    return {name: Scores([row for row in rows if row["learner"] == name])
            for name in dict.fromkeys(row["learner"] for row in rows)}  # fmt: skip


def show_oversampling(rows):
    claims, tables, figures, by_learner = [], [], [], scores_by_learner(rows)
    for learner, scores in by_learner.items():
        for rival in ("SMOTE", "ADASYN"):
            for metric in ("average_precision", "brier"):
                claims.append(_better_rank_claim(scores, learner, OURS, rival, metric))
        claims.append(_not_worse_claim(scores, learner, OURS, NOTHING, "average_precision"))
        claims.append(_not_worse_claim(scores, learner, OURS, "SMOTE", "f1_tuned"))
        tables.append(_means_table(scores, f"{learner}: means over {len(scores.tables)} tables."))
        tables.append(_ranks_table(scores, f"{learner}: mean ranks over tables, 1 is best."))
        caption = (
            f"{learner}: mean gain over tables (positive is better), chance of it (signed ranks), wins / ties / losses "
            f"with ties within {EQUIVALENT}; last, tables where the corrected interval of the gain in average "
            "precision excludes zero."
        )
        tables.append(_paired_table(scores, caption, [arm for arm in (OURS, OURS_TUNED) if arm in scores.arms],
                                    [*REFERENCES, OURS]))  # fmt: skip
        caption = f"{learner}: mean ranks in average precision; a bar joins arms that are not told apart at 5 %."
        figures.append(_critical_difference_figure(scores, f"ranks-{learner}", caption))
    for metric in ("average_precision", "f1", "f1_tuned", "brier"):
        caption = f"Gain over doing nothing in {METRICS[metric]}: mean over tables with a 95 % interval."
        figures.insert(0, _gains_figure(by_learner, f"gains-{metric}", caption, metric))
    if any("chosen" in row for row in rows):
        tables.append(_choices_table(rows))
    return Section(claims, tables, figures)


def _choices_table(rows):
    """How often the inner folds chose each setting."""
    chosen = [tuple(row["chosen"].values()) for row in rows if "chosen" in row]
    counts = {setting: chosen.count(setting) for setting in sorted(set(chosen), key=str)}
    cells = [[chain, ratio, count] for (chain, ratio), count in counts.items()]
    return Table("Settings that the inner folds chose, over tables, splits and learners.",
                 ["chain", "ratio", "times"], cells)  # fmt: skip


def show_generative(rows):
    scores = Scores(rows)
    claims = [_better_rank_claim(scores, "generative", OUR_CLASSIFIER, rival, "average_precision") for rival in RIVALS]
    claims += _bar_claims(scores) if "boosting" in scores.arms else []  # optional
    family = [arm for arm in scores.arms if arm not in ("boosting", "forest")]
    means = np.nanmean(scores.of("average_precision"), axis=0)
    best = max(family, key=lambda arm: means[scores.arms.index(arm)])
    first = min(family, key=lambda arm: scores.rank(arm, "average_precision"))
    second = max((arm for arm in family if arm != OUR_CLASSIFIER), key=lambda arm: means[scores.arms.index(arm)])
    chance = signed_rank(scores.gain(OUR_CLASSIFIER, second, "average_precision"), alternative="greater")
    text = f"{OUR_CLASSIFIER} is the best generative classifier by mean and by mean rank of average precision."
    evidence = f"best mean {best}, best rank {first}; next {second}, signed-rank p {chance:.3f}"
    claims.append(Claim(text, _verdict(best == first == OUR_CLASSIFIER, chance < 0.05), evidence))
    purely = f"{LABEL_FREE_CLASSIFIER} is the purely generative form, of two members"
    caption = f"Means over {len(scores.tables)} tables; {purely}."
    paired = (
        "Our classifier: mean gain over tables, chance of it (signed ranks), wins / ties / losses with ties within "
        f"{EQUIVALENT}; last, tables where the corrected interval excludes zero."
    )
    tables = [
        _means_table(scores, caption),
        _ranks_table(scores, "Mean ranks over tables, 1 is best."),
        _paired_table(scores, paired, [OUR_CLASSIFIER], [arm for arm in scores.arms if arm != OUR_CLASSIFIER]),
        _each_table(scores),
    ]
    figures = [_critical_difference_figure(scores, f"ranks-generative-{metric}", f"Mean ranks in {METRICS[metric]}; "
               "a bar joins classifiers that are not told apart at 5 %.", metric)
               for metric in ("average_precision", "brier")]  # fmt: skip
    return Section(claims, tables, figures)


def _bar_claims(scores):
    """Claims about our classifier and boosting: mean, rank and Brier score."""
    gains = scores.gain(OUR_CLASSIFIER, "boosting", "average_precision")
    gain = estimate(gains)
    own, other = (scores.rank(arm, "average_precision") for arm in (OUR_CLASSIFIER, "boosting"))
    brier = scores.gain(OUR_CLASSIFIER, "boosting", "brier")
    better = signed_rank(brier, alternative="greater")
    return [
        Claim(
            f"{OUR_CLASSIFIER}'s mean average precision is within .03 of boosting's or above it.",
            _verdict(gain.mean > -0.03, gain.low > -0.03),
            f"mean gain {gain.text('+')} over tables",
        ),
        Claim(
            f"{OUR_CLASSIFIER}'s mean rank in average precision is level with boosting's or better.",
            _verdict(own <= other, signed_rank(gains, alternative="greater") < 0.05),
            f"mean ranks {own:.2f} and {other:.2f}; signed-rank p {signed_rank(gains, alternative='greater'):.3f}",
        ),
        Claim(
            f"{OUR_CLASSIFIER}'s mean Brier score is no worse than boosting's.",
            _verdict(brier.mean() >= 0, better < 0.05),
            f"mean gain {brier.mean():+.4f}, signed-rank p {better:.3f}",
        ),
    ]  # fmt: skip


def _each_table(scores):
    values = scores.of("average_precision")
    rows = [[table, *(f"{value:.3f}" for value in row)] for table, row in zip(scores.tables, values, strict=True)]
    return Table("Average precision on each table, mean over splits.", ["table", *scores.arms], rows)
