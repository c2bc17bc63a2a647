"""Which of the drawn rows an over-sampler keeps: clear, typical, near the boundary, or spread over the class."""

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.neighbors import NearestNeighbors

from scorefield.data.scaling import column_spread

WHERE = ("everywhere", "clear", "core", "boundary", "diverse")
DRAWS = 2.0  # rows drawn for each row kept, unless `selectivity` asks for more
MAX_RIVALS = 2000  # rows that stand for a class when generated rows are judged: each costs this many distances
NEIGHBORS = 5  # whose distance tells how much a class claims a place
SPREAD_BLOCK = 512  # rows that are kept at a time by their distances: the cost of each grows with the number


def rule_and_draws(where, selectivity):
    """What is kept, and the number of rows to draw for each row kept."""
    if where == "everywhere":
        return ("clear", selectivity) if selectivity > 1 else (where, 1.0)
    return where, selectivity if selectivity > 1 else DRAWS


def rival_places(rng, n):
    """Indices of all n rows, or of MAX_RIVALS at random."""
    return np.arange(n) if n <= MAX_RIVALS else np.sort(rng.choice(n, MAX_RIVALS, replace=False))


def least_claimed(drawn, own, rivals, n):
    """Indices of the n draws with the smallest own/other distance ratio, in ascending order."""
    own = own[rival_places(np.random.default_rng(0), len(own))]  # as many as rivals at most: only the order matters
    scale = column_spread(np.concatenate([own, rivals]))
    scale = np.where(scale > 0, scale, 1.0)

    def distance(rows):
        neighbors = NearestNeighbors(n_neighbors=min(NEIGHBORS, len(rows))).fit(rows / scale)
        return neighbors.kneighbors(drawn / scale)[0][:, -1]

    return greatest(-distance(own) / np.maximum(distance(rivals), np.finfo(float).tiny), n)


def greatest(values, n):
    """Indices of the n greatest values, in ascending order."""
    return np.sort(np.argsort(-values, kind="stable")[:n])


def log_odds(logits, label):
    """Log odds of a class against all others, from logits (n, classes)."""
    return logits[:, label] - logsumexp(np.delete(logits, label, axis=1), axis=1)


def most_diverse(drawn, known, n):
    """Indices of n draws that are far from each other and from known rows, in ascending order.

    Farthest first: each next row is the one whose nearest kept row is farthest away. Long tables are cut into blocks,
    each of which sees the rows kept from the blocks just before it.
    """
    known = known[rival_places(np.random.default_rng(0), len(known))]
    n_blocks = -(-n // SPREAD_BLOCK)
    kept = []
    for part, size in zip(np.array_split(np.arange(len(drawn)), n_blocks), _shares(n, n_blocks), strict=True):
        nearest = cdist(drawn[part], np.concatenate([known, drawn[np.array(kept[-MAX_RIVALS:], int)]])).min(axis=1)
        for _ in range(size):
            best = int(np.argmax(nearest))
            kept.append(part[best])
            nearest = np.minimum(nearest, np.sqrt(((drawn[part] - drawn[part[best]]) ** 2).sum(axis=1)))
            nearest[best] = -1.0
    return np.sort(kept)


def _shares(n, n_blocks):
    """n split into almost equal whole numbers, as `numpy.array_split` does."""
    return [len(part) for part in np.array_split(np.arange(n), n_blocks)]
