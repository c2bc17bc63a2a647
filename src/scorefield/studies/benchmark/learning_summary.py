"""The section of `learning` in the benchmark's report: gains with intervals, ranks, and claims computed from rows."""

from scorefield.evaluation.remedies import NOTHING
from scorefield.evaluation.statistics import estimate
from scorefield.studies.benchmark import arms
from scorefield.studies.benchmark.arms import DISTILLED, NOISE, OURS, OUT_OF_FOLD, SHARING, SMOTE_ROWS
from scorefield.studies.benchmark.summaries import (
    METRICS,
    Scores,
    better_mean_claim,
    better_rank_claim,
    first_claim,
    gains_figure,
    means_table,
    ranks_table,
    verdict,
)
from scorefield.studies.engine.experiment import Claim, Section, Table

OVER_SAMPLERS = (NOISE, SMOTE_ROWS, "ADASYN", *arms.PAPER_CASES, OURS, SHARING)
REFUTING = (OUT_OF_FOLD, arms.PARENTS_LABELS, arms.BOOSTING_TEACHES, arms.FOREST_TEACHES, arms.SPUNGE)
TAUGHT_WELL, NOT_HARMED = ("boosting", "forest", "network"), ("logistic", "neighbours")
SAMPLED_WELL = ("boosting", "forest", "neighbours", "network")
SHOWN = ("average_precision", "log_loss", "f1_tuned")
LOSS_ALLOWED = 0.005  # in average precision and F1
SHARE_ALLOWED = 0.02  # of the log loss


def whole(rows):
    """Rows of the arms that every table has, and the names of the other arms: a run may have stopped between them."""
    tables = {row["table"] for row in rows}
    seen: dict[str, set] = {}
    for row in rows:
        seen.setdefault(row["arm"], set()).add(row["table"])
    partial = [arm for arm, own in seen.items() if own != tables]
    return [row for row in rows if row["arm"] not in partial], partial


def not_behind_claim(scores, learner, arm, metric, allowed=LOSS_ALLOWED, *, relative=False):
    """Claim that a mean is behind doing nothing by no more than is allowed, also by the interval over tables."""
    gain, unit = scores.gain(arm, NOTHING, metric), ""
    if relative:
        gain, unit = gain / scores.column(NOTHING, metric).mean(), " of its mean"
    found = estimate(gain)
    text = f"{arm} is not behind {NOTHING} by more than {allowed:g}{unit} in {METRICS[metric]}, {learner}."
    return Claim(text, verdict(found.mean >= -allowed, found.low >= -allowed), f"mean gain {found.text('+')}{unit}")


def claims_of(scores, learner):
    """The claims about one learner, as far as its arms were run."""
    there, found = set(scores.arms), []
    if DISTILLED in there:
        if learner in TAUGHT_WELL:
            found += [_named(better_mean_claim(scores, DISTILLED, NOTHING, metric), learner) for metric in SHOWN[:2]]
        if learner in NOT_HARMED:
            found.append(not_behind_claim(scores, learner, DISTILLED, "average_precision"))
            found.append(not_behind_claim(scores, learner, DISTILLED, "log_loss", SHARE_ALLOWED, relative=True))
        among = [arm for arm in (DISTILLED, *OVER_SAMPLERS) if arm in there]
        if len(among) > 1:
            what = f"arms (it and over-samplers) before {learner}"
            found += [first_claim(scores, DISTILLED, metric, what, among) for metric in SHOWN[:2]]
        found += [_named(better_mean_claim(scores, DISTILLED, rival, metric), learner)
                  for rival in REFUTING if rival in there for metric in SHOWN[:2]]  # fmt: skip
    if OURS in there:
        for metric in ("average_precision", "f1_tuned"):
            if learner in SAMPLED_WELL:
                found += [better_rank_claim(scores, learner, OURS, rival, metric)
                          for rival in (NOTHING, NOISE, SMOTE_ROWS) if rival in there]  # fmt: skip
            elif learner == "logistic":
                found.append(not_behind_claim(scores, learner, OURS, metric))
    return found


def _named(claim, learner):
    return Claim(f"{claim.text[:-1]}, {learner}.", claim.verdict, claim.evidence)


def gains_table(scores, learner):
    """Gains over doing nothing, means over sets of rows with intervals."""
    rows = [
        [arm, *(estimate(scores.gain(arm, NOTHING, metric)).text("+") for metric in SHOWN)]
        for arm in scores.arms
        if arm != NOTHING
    ]
    caption = f"{learner}: gain over doing nothing (positive is better), mean over sets of rows with a 95 % interval."
    return Table(caption, ["arm", *(METRICS[metric] for metric in SHOWN)], rows)


def show_learning(rows):
    claims, tables, by_learner, partial = [], [], {}, {}
    for learner in dict.fromkeys(row["learner"] for row in rows):
        kept, left_out = whole([row for row in rows if row["learner"] == learner])
        scores = Scores(kept)
        if NOTHING not in scores.arms:
            continue
        by_learner[learner] = scores
        if left_out:
            partial[learner] = left_out
        claims += claims_of(scores, learner)
        tables.append(gains_table(scores, learner))
        tables.append(means_table(scores, f"{learner}: means over {len(scores.tables)} tables."))
        tables.append(ranks_table(scores, f"{learner}: mean ranks over tables, 1 is best."))
    if partial:
        lines = [[learner, ", ".join(names)] for learner, names in partial.items()]
        tables.append(Table("Not run on all tables yet, and left out.", ["learner", "arms"], lines))
    figures = [
        gains_figure(by_learner, f"gains-learning-{metric}", f"Gain over doing nothing in {METRICS[metric]}: mean over "
                     "tables with a 95 % interval.", metric)
        for metric in SHOWN
    ] if by_learner else []  # fmt: skip
    return Section(claims, tables, figures)
