"""Which rows of a large table a classifier learns from: all of rare classes, and part of the common ones.

A network has a budget of steps; spent on rows that look like ten thousand others they teach little. So common rows are
drawn, half of them evenly and half by the surprise of a quick first model: near the rare rows there are more of them.
The chance of a row of class k at x is a known function pi_k(x), and the log odds of the chosen rows are those of the
table plus log pi (local case-control sampling: Fithian & Hastie 2014; more classes: Han, Tan, Yang & Zhang 2020). A
model that is given log pi as an offset learns the table's own odds.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from scorefield.data.association import some_of_each
from scorefield.data.parts import places_of

WHOLE, WHOLE_EVEN = 20_000, 50_000  # rows of a class up to which all are learned from; where draws are even
MOST_ROWS = 1 << 19  # held in memory of a table that is read in parts
MOST_MIXED = 100_000  # of mixed rows, whose members draw 64,000 each
# Of all rarer classes, for a first model to tell: with 170 rare rows even draws were better, as on the frauds of
# `benchmarks/large_tables.py`, and with 4,400 worse, as on its made tables.
RARE_ROWS = 1000
SURPRISING = 0.5  # share of the common rows that is drawn by surprise: no row weighs more than twice the mean
ROUNDS = 10
PILOT_ROWS = 40_000  # that the first models learn from, as even as the classes allow
PILOT_TREES, LEAST_TREES, PILOT_RATE = 60, 10, 0.2  # of all classes, and of each
LEAST_SHARE = 1e-9  # of a class, by a first model


class Choice(NamedTuple):
    """Chosen rows of a table, and how likely they were to be chosen."""

    places: np.ndarray  # sorted indices of the rows
    log_chances: np.ndarray  # (rows, classes): of a row like this, had it each of the classes


def choose_rows(rng, rows, labels, common_per_rare, groups=None):
    """A `Choice` with about `common_per_rare` rows of each class for a row of rarer classes, or None for all rows.

    Classes of up to WHOLE rows are chosen whole, and so are those with few rarer rows.
    """
    counts = np.bincount(labels)
    wanted = np.where(_rarer(counts) >= RARE_ROWS, _wanted(counts, common_per_rare, WHOLE), counts)
    if (wanted == counts).all():
        return None
    surprise, chances = -np.expm1(_log_shares(rng, rows, labels, groups)), np.ones((len(labels), len(counts)))
    for k in np.flatnonzero(wanted < counts):
        own = labels == k
        by_surprise = SURPRISING * wanted[k] / max(surprise[own, k].sum(), 1e-12) * surprise[:, k]
        even = (1 - SURPRISING) * wanted[k] / counts[k]
        for _ in range(ROUNDS):  # what surprise cannot use, since chances end at one, is drawn evenly
            even += (wanted[k] - np.minimum(even + by_surprise[own], 1.0).sum()) / counts[k]
        chances[:, k] = np.minimum(even + by_surprise, 1.0)
    places = np.flatnonzero(rng.uniform(size=len(labels)) < chances[np.arange(len(labels)), labels])
    return Choice(places, np.log(chances[places]).astype(np.float32))


def choose_ranks(rng, counts, common_per_rare, mixed=False):
    """For each class which of its rows a table is learned from at most, as sorted numbers among them; None for all.

    These are even draws: of rows beyond what memory and training have use for, and, where no first model can tell which
    rows surprise, of those beyond `common_per_rare` for each rarer row. Mixed rows have no first model.
    """
    counts = np.asarray(counts)
    few = np.full(len(counts), True) if mixed else _rarer(counts) < RARE_ROWS
    kept = np.where(few, _wanted(counts, common_per_rare, WHOLE_EVEN), counts)
    kept = np.minimum(kept, _even_bound(kept, MOST_MIXED if mixed else MOST_ROWS)).tolist()
    pairs = zip(counts.tolist(), kept, strict=True)
    return [None if n == count else np.sort(rng.choice(count, n, replace=False)) for count, n in pairs]


def even_part(rng, labels, common_per_rare, mixed=False):
    """Places of the rows that `choose_ranks` has of a table in memory, or None for all rows."""
    ranks = choose_ranks(rng, np.bincount(labels), common_per_rare, mixed)
    return None if all(own is None for own in ranks) else places_of(labels, ranks)


def _rarer(counts):
    """Rows of all classes with fewer rows than each class."""
    return np.array([counts[counts < count].sum() for count in counts])


def _wanted(counts, common_per_rare, whole):
    """Rows of each class that are to be chosen; the rarest classes stay whole, and so do classes of one size."""
    if common_per_rare is None:
        return counts
    rarer = _rarer(counts)
    return np.where(rarer > 0, np.minimum(counts, np.maximum(common_per_rare * rarer, whole)), counts)


def _even_bound(counts, most):
    """The greatest number of rows of a class with which all classes together have up to `most`; at least one."""
    for place, count in enumerate(sorted(counts)):
        share = most // (len(counts) - place)
        if count > share:
            return max(share, 1)
        most -= count
    return max(counts)


def _log_shares(rng, rows, labels, groups):
    """Log posteriors (n, classes) of rows by a first model that has not seen them.

    Two models have half of the rows, or of their groups, each and judge the other half. A model that knows a row's
    label would tell of it by the row's chance, for which no offset makes up.
    """
    counts, owners = np.bincount(labels), np.arange(len(labels)) if groups is None else groups
    fold = (rng.permutation(owners.max() + 1) % 2)[owners]
    found = np.empty((len(labels), len(counts)))
    for own in (0, 1):
        kept, judged = np.flatnonzero(fold == own), fold != own
        kept = kept[some_of_each(labels[kept], PILOT_ROWS // 2)]
        with threadpool_limits(1, "openmp"):  # sums of several threads have no fixed order
            pilot = HistGradientBoostingClassifier(
                max_iter=max(PILOT_TREES // (len(counts) - 1), LEAST_TREES), learning_rate=PILOT_RATE,
                early_stopping=False, random_state=0,
            ).fit(rows[kept], labels[kept])  # fmt: skip
            seen = np.maximum(pilot.predict_proba(rows[judged]), LEAST_SHARE)
        # As in any case-control sample, constants tell the odds of the first rows from those of the table.
        own_counts = np.bincount(labels[kept], minlength=len(counts))[pilot.classes_]
        logs = np.full((len(seen), len(counts)), np.log(LEAST_SHARE))
        logs[:, pilot.classes_] = np.log(seen) + np.log(counts[pilot.classes_] / own_counts)
        found[judged] = log_softmax(logs, axis=1)
    return found


def standing_for_table(table):
    """A `LabelledRow` whose rows weigh as much as those of the table that they were chosen from."""
    if table.log_chances is None:
        return table
    own = np.exp(-table.log_chances[np.arange(len(table.label)), table.label].astype(np.float64))
    weights = own if table.weight is None else own * table.weight
    return table._replace(weight=(weights / weights.mean()).astype(np.float32), log_chances=None)
