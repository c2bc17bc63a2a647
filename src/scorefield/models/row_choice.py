"""Which rows of a large table a classifier learns from: all of rare classes, and part of the common ones.

A case-control sample: rows are drawn evenly within classes, so that constants of the classes alone tell the log odds of
the chosen rows from those of the table (Prentice & Pyke 1979; Fithian & Hastie 2014). A network has a budget of steps;
spent on rows that look like ten thousand others they teach little.
"""

from typing import NamedTuple

import numpy as np

WHOLE = 50_000  # rows of a class up to which all are learned from


class Choice(NamedTuple):
    """Chosen rows of a table, and what to add to log posteriors of a model of them."""

    places: np.ndarray  # sorted indices of the rows
    shift: np.ndarray  # (classes,): log shares in the table less those in the chosen rows


def choose_rows(rng, labels, weights, common_per_rare):
    """A `Choice` with at most `common_per_rare` rows of each class for a row of rarer classes, or None for all rows.

    Classes of up to WHOLE rows are chosen whole. `weights` of the rows, or None, count in the shares.
    """
    counts = np.bincount(labels)
    rarer = np.array([counts[counts < count].sum() for count in counts])
    kept = np.minimum(counts, np.maximum(common_per_rare * rarer, WHOLE)) if common_per_rare else counts
    kept = np.where(rarer > 0, kept, counts).astype(int)  # the rarest classes stay whole, so do classes of one size
    if (kept == counts).all():
        return None
    places = np.flatnonzero((kept == counts)[labels])
    drawn = [rng.choice(np.flatnonzero(labels == k), kept[k], replace=False) for k in np.flatnonzero(kept < counts)]
    places = np.sort(np.concatenate([places, *drawn]))
    return Choice(places, np.log(_shares(labels, weights)) - np.log(_shares(labels[places], weights, places)))


def _shares(labels, weights, places=slice(None)):
    totals = np.bincount(labels, None if weights is None else weights[places])
    return totals / totals.sum()
