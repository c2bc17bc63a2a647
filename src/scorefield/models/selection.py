"""Which of the drawn rows an over-sampler keeps: clear, typical, near the boundary, or spread over the class."""

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

WHERE = ("everywhere", "clear", "core", "boundary", "diverse")
DRAWS = 2.0  # rows drawn for each row kept, but where all are
MAX_RIVALS = 10_000  # rows of the other classes that a classifier learns from to judge generated rows
MAX_COMPARED = 2000  # rows that a generated row is compared with: each costs a distance
SPREAD_BLOCK = 512  # rows that are kept at a time by their distances: the cost of each grows with the number


def draws_for(where):
    """The number of rows to draw for each row kept."""
    return 1.0 if where == "everywhere" else DRAWS


def some_places(rng, n, most):
    """Indices of all n rows, or of `most` at random."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


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
    known = known[some_places(np.random.default_rng(0), len(known), MAX_COMPARED)]
    n_blocks = -(-n // SPREAD_BLOCK)
    kept = []
    for part, size in zip(np.array_split(np.arange(len(drawn)), n_blocks), even_shares(n, n_blocks), strict=True):
        nearest = cdist(drawn[part], np.concatenate([known, drawn[np.array(kept[-MAX_COMPARED:], int)]])).min(axis=1)
        for _ in range(size):
            best = int(np.argmax(nearest))
            kept.append(part[best])
            nearest = np.minimum(nearest, np.sqrt(((drawn[part] - drawn[part[best]]) ** 2).sum(axis=1)))
            nearest[best] = -1.0
    return np.sort(kept)


def even_shares(n, n_parts):
    """n split into almost equal whole numbers, the larger ones first."""
    return [len(part) for part in np.array_split(np.arange(n), n_parts)]


def one_row_warning(label, n_rows, how):
    """What to tell where all rows of a class are one and the same: nothing can be learned of it."""
    rows = "only one row" if n_rows == 1 else f"{n_rows} rows, all of them equal"
    return (
        f"Class {label!r} has {rows}: its new rows are noise around one row ({how}) and tell a learner nothing more "
        "about the class. Collect more rows of it, or look for rows unlike all others with ScoreOutlierDetector."
    )
