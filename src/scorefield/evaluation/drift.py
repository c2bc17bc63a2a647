"""Drift: how new rows differ from reference rows, as other class shares and as columns that changed.

Every test permutes reference and new rows, so that its false alarm rate holds whatever the model is worth.
"""

import dataclasses

import narwhals as nw
import numpy as np
from scipy.special import log_softmax
from sklearn.utils.validation import check_is_fitted

from scorefield.data.containers import Table, is_frame, take_rows
from scorefield.evaluation.column_losses import CellViews
from scorefield.evaluation.drift_statistics import BOOTSTRAP, em_shares, max_t_test

FEWEST_ROWS = 50
MOST_ROWS = 1000  # of each table, drawn at random: the losses of a row cost a pass of the model per cell and candidate
MOST_NAMED = 8  # columns: each needs the losses once more


@dataclasses.dataclass(frozen=True)
class Drift:
    """Result of `drift`: class shares, columns from the most changed one on, and sentences about them."""

    labels: list  # of dicts: label, reference, new, low, high; empty for a model without classes
    label_p_value: float | None
    columns: list  # of dicts: column, statistic, p_value, changed, kind, with
    explained_by_labels: bool
    probabilities: np.ndarray | None
    ignored: list
    level: float
    sentences: list

    @property
    def changed(self):
        """Names of the columns that changed, in the order in which they were found."""
        return [column["column"] for column in self.columns if column["changed"]]

    def __str__(self):
        return "\n".join(self.sentences)


def drift(model, new_rows, reference=None, *, level=0.05, random_state=0):
    """Tell whether new rows differ from reference rows, in which columns, and whether other class shares explain it.

    Parameters
    ----------
    model : fitted ScoreClassifier or ScoreDensity
        Of the columns that are compared.
    new_rows : table like the fitted one
        At least 50 rows, without labels. Columns that the model does not know are ignored.
    reference : table like the fitted one
        At least 50 rows from before the change that the model was not fitted to: its losses on fitted rows are too low.
    level : float
        Greatest probability to name any column, or a change of class shares, where nothing changed.
    random_state : int
        Of the permutations, and of the 1,000 rows that are drawn from larger tables.

    Returns
    -------
    Drift
        ``labels`` (per class its share in the reference rows and in the new ones, with a 95 % interval, from the
        posterior by EM), ``label_p_value``, ``columns`` (``statistic``, ``p_value``, ``changed``, ``kind``, which is
        "values" where the column's own distribution changed and "relation" where it changed given the others alone,
        and ``with``, the column that it changed together with), ``explained_by_labels`` (True where columns are
        compared with reference rows of the new class shares), ``probabilities`` (of the new rows, for the new class
        shares), ``ignored`` (columns of the new rows that the model does not know) and ``sentences``.

    Notes
    -----
    A column is scored by the loss of its cells given the rest of the row, and by its values. The most changed one is
    named; then it is drawn anew from its law given the others in both tables, and the rest is compared again, so that
    columns which only go along with it are not named. Class shares assume that rows of one class stay as they were.

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import ScoreDensity, drift
    >>> rng = np.random.default_rng(0)
    >>> X, reference, new = (rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 300) for _ in range(3))
    >>> model = ScoreDensity("gaussian", random_state=0).fit(X)
    >>> drift(model, new, reference).changed, drift(model, new * [1, -1], reference).columns[0]["kind"]
    ([], 'relation')
    """
    check_is_fitted(model)
    if reference is None:
        raise ValueError(
            "Expected reference rows that the model was not fitted to, got None: losses of fitted rows are too low, "
            "and every new table would seem to drift; hold some rows out before fitting."
        )
    if not 0 < level < 1:
        raise ValueError(f"Expected level between 0 and 1, got {level}.")
    (before, _), (after, ignored) = (_checked(model, table, what) for table, what in
                                     ((reference, "reference"), (new_rows, "new")))  # fmt: skip
    rng = np.random.default_rng(random_state)
    before, some = _some(rng, before), _some(rng, after)
    views = CellViews(model)
    rows = [views.read(before), views.read(some)]
    views.fit_margins(np.concatenate(rows))
    labels, p_label, shares, weights, probabilities = [], None, None, None, None
    if hasattr(model, "classes_"):
        logs = [log_softmax(views.logits(part), axis=1) for part in rows]
        p_label, shares, labels = _label_shift(rng, logs, views.frequencies, model.classes_)
        probabilities = _reweighted(views.logits(views.read(after)), views.frequencies, shares[1])
        weights = np.exp(logs[0]) @ (shares[1] / shares[0])
    shifted = p_label is not None and p_label < level
    columns, explained = _changed_columns(rng, views, rows, weights if shifted else None, level)
    sentences = _sentences(labels, p_label, columns, explained, ignored, level)
    return Drift(labels, p_label, columns, explained, probabilities, ignored, level, sentences)


def _checked(model, table, what):
    """The columns of a table that a model knows, and the names of the others."""
    whole, ignored = Table(table), []
    if whole.n_rows < FEWEST_ROWS:
        raise ValueError(f"Expected at least {FEWEST_ROWS} {what} rows, got {whole.n_rows}; collect more.")
    names = list(getattr(model, "feature_names_in_", []))
    if is_frame(table) and names:
        missing = [name for name in names if name not in whole.names]
        if missing:
            raise ValueError(
                f"Expected the columns of the fitted table in the {what} rows, got none named "
                f"{', '.join(map(repr, missing))}; add them, with missing values if they are not known."
            )
        ignored = [name for name in whole.names if name not in names]
        table = nw.from_native(whole.native, eager_only=True).select(names).to_native() if ignored else whole.native
    return table, ignored


def _some(rng, table):
    """At most MOST_ROWS random rows."""
    n_rows = Table(table).n_rows
    return table if n_rows <= MOST_ROWS else take_rows(table, np.sort(rng.choice(n_rows, MOST_ROWS, replace=False)))


def _label_shift(rng, logs, frequencies, classes):
    """The p-value of other class shares, the shares before and after, and a dict for each class."""
    p_value = max_t_test(rng, *(np.exp(part) for part in logs))[1].min()
    shares = np.array([em_shares(part, frequencies) for part in logs])
    drawn = [em_shares(logs[1][rng.integers(len(logs[1]), size=len(logs[1]))], frequencies) for _ in range(BOOTSTRAP)]
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    labels = [
        {"label": label, "reference": before, "new": after, "low": min(a, after), "high": max(b, after)}
        for label, before, after, a, b in zip(
            classes.tolist(), *shares.tolist(), low.tolist(), high.tolist(), strict=True
        )
    ]
    return float(p_value), shares, labels


def _reweighted(logits, frequencies, shares):
    """Probabilities for other class shares than those of the fitted rows."""
    return np.exp(log_softmax(logits + np.log(np.maximum(shares, 1e-12) / frequencies), axis=1))


def _changed_columns(rng, views, rows, weights, level):
    """Columns from the most changed one on, and whether reference rows of the new class shares explain more."""
    losses = [views.losses(rng, part) for part in rows]
    tested, p_values = _tested(rng, views, rows, losses)
    explained = False
    if weights is not None:
        kept = np.flatnonzero(rng.uniform(size=len(weights)) < weights / weights.max())
        if len(kept) >= FEWEST_ROWS:
            as_new, other_losses = [rows[0][kept], rows[1]], [losses[0][kept], losses[1]]
            other, other_p = _tested(rng, views, as_new, other_losses)
            explained = bool(other.total.sum() / len(other.total) < tested.total.sum() / len(tested.total))
            if explained:
                rows, losses, tested, p_values = as_new, other_losses, other, other_p
    found, left = [], np.ones(len(views.names), bool)
    while left.any():
        worst = int(np.argmax(np.where(left, tested.total, -np.inf)))
        changed = bool(p_values[worst] <= level and len(found) < MOST_NAMED)
        if not changed:
            found += [_told(views, tested, p_values, j, False) for j in np.argsort(-tested.total) if left[j]]
            break
        left[worst] = False
        entry = _told(views, tested, p_values, worst, True)
        found.append(entry)
        if not left.any():
            break
        rows = [views.redrawn(rng, part, worst) for part in rows]
        losses = [views.losses(rng, part) for part in rows]
        before, (tested, p_values) = tested, _tested(rng, views, rows, losses, left)
        drop = np.where(left, before.of_losses - tested.of_losses, -np.inf)
        if entry["kind"] == "relation" and drop.max() > 0:
            entry["with"] = views.names[int(np.argmax(drop))]
    return found, explained


@dataclasses.dataclass
class _Tested:
    """Statistics of every column: of its losses, of its values, and both together."""

    of_losses: np.ndarray
    of_values: np.ndarray
    values_p: np.ndarray

    @property
    def total(self):
        return self.of_losses**2 + self.of_values**2


def _tested(rng, views, rows, losses, left=None):
    """Statistics, and p-values that hold for all columns together; those that are not `left` are not tested."""
    left = np.ones(len(views.names), bool) if left is None else left
    pooled, owners = views.features(np.concatenate(rows))
    n = len(rows[0])
    every = np.hstack([np.concatenate(losses), pooled])
    owners = np.concatenate([np.arange(len(views.names)), owners])
    of_loss = np.arange(len(owners)) < len(views.names)
    kept = left[owners]
    statistics, p_values = np.zeros(len(owners)), np.ones(len(owners))
    statistics[kept], p_values[kept] = max_t_test(rng, every[:n][:, kept], every[n:][:, kept])

    def greatest(values, chosen, start):
        result = np.full(len(left), start, float)
        (np.maximum if start == 0 else np.minimum).at(result, owners[chosen], values[chosen])
        return result

    everything = np.ones(len(owners), bool)
    tested = _Tested(
        greatest(statistics, of_loss, 0), greatest(statistics, ~of_loss, 0), greatest(p_values, ~of_loss, 1)
    )
    return tested, greatest(p_values, everything, 1)


def _told(views, tested, p_values, j, changed):
    kind = None if not changed else ("values" if tested.values_p[j] <= p_values[j] + 0.05 else "relation")
    statistic = float(max(tested.of_losses[j], tested.of_values[j]))
    return {
        "column": views.names[j], "statistic": statistic, "p_value": float(p_values[j]), "changed": changed,
        "kind": kind, "with": None,
    }  # fmt: skip


def _sentences(labels, p_label, columns, explained, ignored, level):
    found = []
    if p_label is not None and p_label < level:
        parts = [f"{e['label']!r} {e['new']:.1%} ({e['low']:.1%} to {e['high']:.1%}), before {e['reference']:.1%}"
                 for e in labels]  # fmt: skip
        found.append(f"Class shares differ (p = {p_label:.3g}): {'; '.join(parts)}.")
        if explained:
            found.append("Columns are compared with reference rows of the new class shares.")
    elif p_label is not None:
        found.append(f"Class shares do not differ beyond chance (p = {p_label:.2g}).")
    changed = [column for column in columns if column["changed"]]
    for column in changed:
        what = "has other values" if column["kind"] == "values" else "has another relation to the other columns"
        partner = "" if column["with"] is None else f", most of all to {column['with']!r}"
        found.append(f"Column {column['column']!r} {what}{partner} (p = {column['p_value']:.3g}).")
    if not changed:
        found.append(f"No column differs beyond chance (level {level:g} for all of them together).")
    elif p_label is not None and p_label < level and not explained:
        found.append("The class shares assume rows of one class as before, which the columns contradict.")
    if ignored:
        found.append(f"Ignored, since the model does not know them: {', '.join(map(repr, ignored))}.")
    return found
