"""Sections of the benchmark's report: means, ranks with a critical difference, paired comparisons, claims."""

import itertools
import math
from typing import Any

import numpy as np
from scipy.stats import false_discovery_control

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
from scorefield.evaluation.remedies import NOTHING, THRESHOLD, WEIGHTS
from scorefield.evaluation.statistics import FAILS, HOLDS, WITHIN_NOISE, estimate
from scorefield.studies.benchmark.arms import (
    DISTILLED,
    OUR_CLASSIFIER,
    OURS,
    OURS_CLEAR,
    OURS_TUNED,
    SHARING,
    TUNED_BOOSTING,
)
from scorefield.studies.engine.experiment import Claim, Figure, Section, Table

RANKED = ("average_precision", "roc_auc", "f1", "f1_tuned", "brier", "log_loss")
METRICS = {name: NAMES[name] for name in (*RANKED, "seconds", "megabytes")} | {"f1": "F1 at .5"}
OUR_ARMS = (OURS, SHARING, OURS_CLEAR, OURS_TUNED, DISTILLED)
REFERENCES = (NOTHING, THRESHOLD, "noise .3", "SMOTE", "ADASYN")
RIVALS = ("naive Bayes", "QDA", "KDE", "GMM", "paper's")
PROBABILITY_METRICS = ("average_precision", "log_loss", "brier")
SAME_ROWS = {"abalone_19": "abalone", "car_eval_4": "car_eval_34"}  # tables that are others with other labels


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
        """Gain of an arm over a reference on each set of rows; positive is better."""
        sign = -1 if metric in LOWER_IS_BETTER else 1
        gains = sign * (self.column(arm, metric) - self.column(reference, metric))
        sets = [SAME_ROWS.get(table, table) for table in self.tables]
        return np.array([np.mean([gain for gain, own in zip(gains, sets, strict=True) if own == name])
                         for name in dict.fromkeys(sets)])  # fmt: skip

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


def means_table(scores, caption):
    known = [metric for metric in METRICS if not np.isnan(scores.of(metric)).all()]
    rows = []
    for arm in scores.arms:
        means = {metric: np.nanmean(scores.column(arm, metric)) for metric in known}
        cells = [f"{mean:.{1 if metric in ('seconds', 'megabytes') else 3}f}" for metric, mean in means.items()]
        refused = sum("refused" in row for row in scores.rows if row["arm"] == arm)
        rows.append([f"{arm} (refused {refused} times: nothing done)" if refused else arm, *cells])
    return Table(caption, ["arm", *(METRICS[metric] for metric in known)], rows)


def ranks_table(scores, caption):
    columns = {metric: scores.ranks(metric) for metric in RANKED if not np.isnan(scores.of(metric)).any()}
    order = np.argsort(columns["average_precision"])
    rows = [[scores.arms[i], *(f"{ranks[i]:.2f}" for ranks in columns.values())] for i in order]
    chance = [f"{friedman(scores.of(metric)):.1e}" for metric in columns]
    rows.append(["chance of such ranks if all were alike (Friedman)", *chance])
    return Table(caption, ["arm", *(METRICS[metric] for metric in columns)], rows)


def _paired_table(scores, caption, arms, references, metrics=("average_precision", "f1_tuned", "brier")):
    pairs = [(arm, reference) for arm in arms for reference in references
             if arm != reference and {arm, reference} <= set(scores.arms)]  # fmt: skip
    gains = {metric: [scores.gain(arm, reference, metric) for arm, reference in pairs] for metric in metrics}
    chances = {metric: false_discovery_control([signed_rank(gain) for gain in own]) for metric, own in gains.items()}
    rows = []
    for place, (arm, reference) in enumerate(pairs):
        cells = []
        for metric in metrics:
            gain, chance = gains[metric][place], chances[metric][place]
            counts = " / ".join(map(str, wins_ties_losses(gain)))
            cells.append(f"{gain.mean():+.3f}, p {chance:.3f}, {counts}")
        sure = scores.per_table(arm, reference, "average_precision").values()
        better, worse = sum(gap.low > 0 for gap in sure), sum(gap.high < 0 for gap in sure)
        rows.append([f"{arm} against {reference}", *cells, f"{better} / {worse}"])
    columns = ["comparison", *(f"gain in {METRICS[metric]}" for metric in metrics), "tables surely better / worse"]
    return Table(caption, columns, rows)


def critical_difference_figure(scores, name, caption, metric="average_precision"):
    def draw():
        import matplotlib.pyplot as plt

        figure, ax = plt.subplots(figsize=(9, 0.9 + 0.24 * len(scores.arms)), layout="constrained")
        difference = critical_difference(len(scores.arms), len(scores.tables))
        draw_critical_difference(scores.arms, scores.ranks(metric), difference, ax)
        return figure

    return Figure(name, caption, draw)


def gains_figure(by_learner, name, caption, metric="average_precision"):
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
                color = COLOURS[arm in OUR_ARMS]
                ax.errorbar(gain.mean(), place, xerr=reach, fmt="o", color=color, markersize=4)
            ax.axvline(0, color="0.6", linewidth=1)
            ax.set(title=learner, yticks=range(len(arms)), yticklabels=arms, xlabel=f"gain, {METRICS[metric]}")
        axes[0, 0].invert_yaxis()
        return figure

    return Figure(name, caption, draw)


def verdict(point, sure):
    return (HOLDS if sure else WITHIN_NOISE) if point else FAILS


def better_rank_claim(scores, learner, arm, rival, metric):
    """Claim of a better mean rank; it holds if the signed-rank test over tables agrees."""
    own, other = scores.rank(arm, metric), scores.rank(rival, metric)
    chance = signed_rank(scores.gain(arm, rival, metric), alternative="greater")
    text = f"{arm} has a better mean rank than {rival} in {METRICS[metric]}, {learner}."
    evidence = f"mean ranks {own:.2f} and {other:.2f}; signed-rank p {chance:.3f} over sets of rows"
    return Claim(text, verdict(own < other, chance < 0.05), evidence)


def not_worse_claim(scores, learner, arm, rival, metric):
    """Claim of no loss above the band of equivalence; it holds if the interval over tables excludes one."""
    gains = scores.gain(arm, rival, metric)
    gain, chance = estimate(gains), signed_rank(gains, alternative="less")
    text = f"{arm} is no worse than {rival} in {METRICS[metric]}, {learner}."
    evidence = f"mean gain {gain.text('+')}, signed-rank p of a loss {chance:.3f}"
    return Claim(text, verdict(chance >= 0.05 and gain.mean > -EQUIVALENT, gain.low > -EQUIVALENT), evidence)


def scores_by_learner(rows):
    """Learner to scores."""
    return {name: Scores([row for row in rows if row["learner"] == name])
            for name in dict.fromkeys(row["learner"] for row in rows)}  # fmt: skip


def show_oversampling(rows):
    claims, tables, figures, by_learner = [], [], [], scores_by_learner(rows)
    for learner, scores in by_learner.items():
        for rival in ("SMOTE", "ADASYN"):
            for metric in ("average_precision", "brier"):
                claims.append(better_rank_claim(scores, learner, OURS_CLEAR, rival, metric))
        others = [arm for arm in scores.arms if arm not in (NOTHING, THRESHOLD, WEIGHTS)]
        for metric in ("average_precision", "f1"):
            claims.append(first_claim(scores, OURS_CLEAR, metric, f"over-samplers before {learner}", others))
        claims.append(not_worse_claim(scores, learner, OURS_CLEAR, NOTHING, "average_precision"))
        claims.append(not_worse_claim(scores, learner, OURS_CLEAR, "SMOTE", "f1_tuned"))
        tables.append(means_table(scores, f"{learner}: means over {len(scores.tables)} tables."))
        tables.append(ranks_table(scores, f"{learner}: mean ranks over tables, 1 is best."))
        caption = (
            f"{learner}: mean gain over sets of rows (positive is better), chance of it (signed ranks, false "
            f"discoveries controlled), wins / ties / losses with ties within {EQUIVALENT}; last, tables where the "
            "corrected interval of the gain in average precision excludes zero."
        )
        tables.append(_paired_table(scores, caption, [SHARING, OURS_CLEAR, OURS_TUNED], [*REFERENCES, SHARING]))
        caption = f"{learner}: mean ranks in average precision; a bar joins arms that are not told apart at 5 %."
        figures.append(critical_difference_figure(scores, f"ranks-{learner}", caption))
    for metric in ("average_precision", "f1", "f1_tuned", "brier"):
        caption = f"Gain over doing nothing in {METRICS[metric]}: mean over tables with a 95 % interval."
        figures.insert(0, gains_figure(by_learner, f"gains-{metric}", caption, metric))
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


def show_classifiers(rows):
    scores = Scores(rows)
    claims = [better_rank_claim(scores, "itself", OUR_CLASSIFIER, rival, "average_precision") for rival in RIVALS]
    claims += [first_claim(scores, OUR_CLASSIFIER, metric) for metric in PROBABILITY_METRICS]
    if TUNED_BOOSTING in scores.arms:  # optional
        claims += [better_mean_claim(scores, OUR_CLASSIFIER, TUNED_BOOSTING, metric) for metric in PROBABILITY_METRICS]
    return _classifier_section(scores, claims, f"Means over {len(scores.tables)} tables.")


def show_mixed_classifiers(rows):
    scores = Scores(rows)
    claims = [first_claim(scores, OUR_CLASSIFIER, metric) for metric in PROBABILITY_METRICS]
    return _classifier_section(scores, claims, f"Means over {len(scores.tables)} tables.", "-mixed")


def show_mixed_oversampling(rows):
    return _show_without_thresholds(rows, ["SMOTENC"], "mixed tables", "mixed")


def show_generators(rows):
    known = {SHARING, OURS_CLEAR, *REFERENCES}  # claims about them are tested on all tables
    rivals = [arm for arm in dict.fromkeys(row["arm"] for row in rows) if arm not in known]
    return _show_without_thresholds(rows, rivals, "narrow tables", "peers")


def _show_without_thresholds(rows, rivals, where, name):
    """Claims against rivals and doing nothing, and means and ranks, before each learner."""
    claims, tables, by_learner = [], [], scores_by_learner(rows)
    for learner, scores in by_learner.items():
        for rival, metric in itertools.product(rivals, ("average_precision", "f1")):
            claims.append(better_rank_claim(scores, f"{learner} on {where}", OURS_CLEAR, rival, metric))
        claims.append(not_worse_claim(scores, f"{learner} on {where}", OURS_CLEAR, NOTHING, "average_precision"))
        tables.append(means_table(scores, f"{learner}: means over {len(scores.tables)} tables."))
        tables.append(ranks_table(scores, f"{learner}: mean ranks over tables, 1 is best."))
    caption = f"Gain over doing nothing in average precision on {where}: mean with a 95 % interval."
    return Section(claims, tables, [gains_figure(by_learner, f"gains-{name}", caption)])


def show_classifier_peers(rows):
    scores = Scores(rows)
    rivals = [arm for arm in scores.arms if arm != OUR_CLASSIFIER]
    claims = [better_rank_claim(scores, "itself", OUR_CLASSIFIER, rival, metric)
              for rival in rivals for metric in PROBABILITY_METRICS]  # fmt: skip
    return _classifier_section(scores, claims, f"Means over {len(scores.tables)} tables.", "-peers")


def show_ablation(rows):
    scores = Scores(rows)
    claims = [better_mean_claim(scores, OUR_CLASSIFIER, arm, metric)
              for arm in scores.arms if arm != OUR_CLASSIFIER for metric in PROBABILITY_METRICS]  # fmt: skip
    return _classifier_section(scores, claims, f"Means over {len(scores.tables)} tables.", "-ablation")


def _classifier_section(scores, claims, caption, suffix=""):
    """Means, ranks, paired comparisons and tables where classifiers differ."""
    paired = (
        "Our classifier: mean gain over sets of rows, chance of it (signed ranks, false discoveries controlled), "
        f"wins / ties / losses with ties within {EQUIVALENT}; last, tables where the corrected interval excludes zero."
    )
    others = [arm for arm in scores.arms if arm != OUR_CLASSIFIER]
    tables = [
        means_table(scores, caption),
        ranks_table(scores, "Mean ranks over tables, 1 is best."),
        _paired_table(scores, paired, [OUR_CLASSIFIER], others, PROBABILITY_METRICS),
        *(_each_table(scores, metric) for metric in ("average_precision", "log_loss")),
    ]
    figures = [critical_difference_figure(scores, f"ranks-classifiers{suffix}-{metric}", f"Mean ranks in "
               f"{METRICS[metric]}; a bar joins classifiers that are not told apart at 5 %.", metric)
               for metric in PROBABILITY_METRICS]  # fmt: skip
    return Section(claims, tables, figures)


def first_claim(scores, arm, metric, what="classifiers", among=None):
    """Claim of the best mean rank of all, or among some arms; it holds if signed ranks tell it from the next."""
    among = scores.arms if among is None else among
    next_best = min((name for name in among if name != arm), key=lambda name: scores.rank(name, metric))
    own, other = scores.rank(arm, metric), scores.rank(next_best, metric)
    chance = signed_rank(scores.gain(arm, next_best, metric), alternative="greater")
    text = f"{arm} has the best mean rank of all {len(among)} {what} in {METRICS[metric]}."
    evidence = f"rank {own:.2f}, best other {next_best} {other:.2f}; signed-rank p {chance:.3f}"
    return Claim(text, verdict(own < other, chance < 0.05), evidence)


def better_mean_claim(scores, arm, rival, metric):
    """Claim of a better mean; it holds if the interval over tables excludes zero."""
    gain = estimate(scores.gain(arm, rival, metric))
    text = f"{arm} is better than {rival} in mean {METRICS[metric]}."
    return Claim(text, verdict(gain.mean > 0, gain.low > 0), f"mean gain {gain.text('+')} over sets of rows")


def _each_table(scores, metric):
    values = scores.of(metric)
    rows = [[table, *(f"{value:.3f}" for value in row)] for table, row in zip(scores.tables, values, strict=True)]
    return Table(f"{METRICS[metric].capitalize()} on each table, mean over splits.", ["table", *scores.arms], rows)
