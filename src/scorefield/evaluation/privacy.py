"""What a generated table gives away of the rows that its generator learned from.

Distances to the nearest training and held-out rows, a membership attack by distance (Chen, Yu, Zhang & Fritz 2020),
near copies, and combinations of categories that only one person has.
"""

import dataclasses
import itertools

import numpy as np
from sklearn.neighbors import NearestNeighbors

from scorefield.evaluation.statistics import auc_interval

MAX_COMPARED = 5000  # rows per table in searches for neighbours and in two-sample tests
NEAR = 0.1  # of the median distance between neighbouring real rows: a row nearer than that is a near copy
MAX_CATEGORIES = 8  # columns whose combinations are counted, those of most levels: 28 pairs and 56 triples
SHOWN_RATIO = 1.5  # times as many combinations as by chance are worth a word
PROMISE = (
    "These numbers can show that a table gives rows away; they cannot show that it is safe. They are no guarantee such "
    "as differential privacy: an attacker who knows more than distances may learn more."
)


@dataclasses.dataclass(frozen=True)
class Privacy:
    """Measures of memory; those that need held-out rows are None without them."""

    near_copies: float
    near_repeats: float
    combinations: int
    combinations_found: int
    combinations_expected: float
    combinations_held_out: int | None = None
    closer_to_training: float | None = None
    distance_ratio: float | None = None
    membership_auc: float | None = None
    membership_range: tuple | None = None
    sentences: list = dataclasses.field(default_factory=list)


def measure_privacy(places, codes, rng):
    """`Privacy` of tables as points and as codes of their categories (NaN at gaps).

    Both are lists for the training, generated and, if there are any, held-out rows.
    """
    near = _near_copies(*(part[rng.permutation(len(part))[:MAX_COMPARED]] for part in places[:2]), places[0])
    found = Privacy(*near, *_rare_combinations(codes))
    if len(places) > 2:
        found = dataclasses.replace(found, **_memory(places, rng))
    return dataclasses.replace(found, sentences=_sentences(found))


def _distances(rows, others, k=1):
    """Distance of each row to its k-th nearest among the others."""
    return NearestNeighbors(n_neighbors=k).fit(others).kneighbors(rows)[0][:, k - 1]


def _near_copies(real, generated, all_real):
    """Shares of generated rows, and of real rows, that nearly equal a (another) real row."""
    usual = _distances(real, all_real, k=2)  # the nearest row is the row itself
    limit = NEAR * np.median(usual)
    return float((_distances(generated, all_real) <= limit).mean()), float((usual <= limit).mean())


def _memory(places, rng):
    """Measures that compare training rows with as many rows that the generator has not seen."""
    n = min(len(places[0]), len(places[2]), MAX_COMPARED)
    training, held_out = (part[rng.permutation(len(part))[:n]] for part in (places[0], places[2]))
    generated = places[1][rng.permutation(len(places[1]))[:MAX_COMPARED]]
    near, far = _distances(generated, training), _distances(generated, held_out)
    members = -np.concatenate([_distances(training, generated), _distances(held_out, generated)])
    auc, auc_range = auc_interval(members, np.repeat([1, 0], n))
    return {
        "closer_to_training": float(np.mean((near < far) + 0.5 * (near == far))),
        "distance_ratio": float(np.median(near) / np.median(far)) if np.median(far) > 0 else None,
        "membership_auc": auc,
        "membership_range": auc_range,
    }


def _rare_combinations(codes):
    """Combinations of two or three categories that one real row has: how many there are, and how many are generated.

    Then the number that generated rows would have if their columns were independent, with the shares that levels have
    in the real table, and the number among the held-out rows, or None.
    """
    parts, sizes = _as_integers(codes)
    wide = np.argsort(sizes, kind="stable")[::-1][:MAX_CATEGORIES]
    total, found, expected, held_out = 0, 0, 0.0, 0
    for chosen in itertools.chain(itertools.combinations(wide, 2), itertools.combinations(wide, 3)):
        once, shares, counts = _single_combinations([part[:, chosen] for part in parts], sizes[list(chosen)])
        total += int(once.sum())
        found += int((once & (counts[1] > 0)).sum())
        expected += float(np.sum(1 - (1 - shares[once]) ** len(codes[1])))
        held_out += int((once & (counts[2] > 0)).sum()) if len(codes) > 2 else 0
    return total, found, expected, held_out if len(codes) > 2 else None


def _as_integers(codes):
    """Levels of all columns as integers from 0, -1 at gaps, and the numbers of levels."""
    ends = np.cumsum([0, *map(len, codes)])
    columns, sizes = [], []
    for column in np.concatenate(codes).T:
        known = ~np.isnan(column)
        levels, places = np.unique(column[known], return_inverse=True)
        whole = np.full(len(column), -1)
        whole[known] = places
        columns.append(whole)
        sizes.append(max(1, len(levels)))
    table = np.column_stack(columns) if columns else np.zeros((ends[-1], 0), int)
    return [table[a:b] for a, b in itertools.pairwise(ends)], np.array(sizes, int)


def _single_combinations(parts, sizes):
    """Of each combination: True if one real row has it, its share if columns were independent, counts in all tables."""
    known = [np.ravel_multi_index(part[(part >= 0).all(axis=1)].T, sizes) for part in parts]
    together, places = np.unique(np.concatenate(known), return_inverse=True)
    ends = np.cumsum([0, *map(len, known)])
    counts = [np.bincount(places[a:b], minlength=len(together)) for a, b in itertools.pairwise(ends)]
    shares = np.ones(len(together))
    for own, size, level in zip(parts[0].T, sizes, np.unravel_index(together, sizes), strict=True):
        shares *= np.bincount(own[own >= 0], minlength=size)[level] / len(own)
    return counts[0] == 1, shares, counts


def _sentences(found):
    said = [
        f"{found.near_copies:.1%} of the generated rows are near copies of a real row (nearer than a tenth of the "
        f"usual distance between neighbours); {found.near_repeats:.1%} of the real rows are that near to another one."
    ]
    if found.membership_auc is None:
        said.append(
            "Whether the generator remembers its rows was not measured: this needs held-out rows that it has not seen."
        )
    else:
        low, high = found.membership_range
        told = "can be told" if low > 0.5 else "cannot be told"
        said.append(
            f"Training rows {told} from held-out rows by their distance to the nearest generated row: AUC "
            f"{found.membership_auc:.2f} [{low:.2f}, {high:.2f}], where .5 is no memory. "
            f"{found.closer_to_training:.0%} of the generated rows lie nearer to a training row than to a held-out "
            "row, where 50% is no memory."
        )
    if found.combinations:
        fresh = "" if found.combinations_held_out is None else f", and held-out rows have {found.combinations_held_out}"
        many = found.combinations_found > SHOWN_RATIO * found.combinations_expected
        said.append(
            f"{found.combinations_found} of {found.combinations} combinations of two or three categories that point to "
            f"one real row are among the generated rows; independent columns would have "
            f"{found.combinations_expected:.0f}{fresh}{'. Look at them before you publish' if many else ''}."
        )
    return [*said, PROMISE]
