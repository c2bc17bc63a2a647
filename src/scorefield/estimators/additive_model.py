"""A sparse additive model of the labels: what single columns tell of them, with steps where trees would have some.

Its logits are a weighted sum of columns, of smooth steps at their quantiles and of indicators of levels; a penalty on
absolute weights leaves most of them at zero (Tibshirani 1996). Where few of many columns decide, or one decides by a
step, it needs fewer rows than a network. A classifier gives it the share of its logits that held-out labels ask for.
"""

import numpy as np
from scipy.special import log_softmax

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method, leaf
from scorefield.data.association import column_gains, some_of_each
from scorefield.estimators._sklearn import sparse_logistic
from scorefield.fields.joint import THRESHOLDS, WIDTH, ColumnNetwork, columns_of
from scorefield.fields.networks import Network

QUANTILE_ROWS = 10_000  # rows by which quantiles are told well enough
STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0)  # of the labels against the penalty
PATH_SPLITS = 2  # of the members' splits try all strengths, the others have the best
MAX_CELLS = 4_000_000  # numbers of rows, inputs and classes, multiplied: about .2 seconds a fit
LEAST_ROWS = 1000  # that are kept where there are more cells; beyond it columns go


class AdditiveInputs:
    """Columns, steps and indicators of a labelled table, as its additive model sees them."""

    def __init__(self, table, layout):
        numbers = table.x if layout is None else table.x[:, : layout.n_numbers]
        self.columns = columns_of(numbers)
        many = list(self.columns.many_valued)
        levels, values = (np.arange(THRESHOLDS) + 0.5) / THRESHOLDS, self.columns.values
        if len(values) > QUANTILE_ROWS:
            values = values[np.random.default_rng(0).choice(len(values), QUANTILE_ROWS, replace=False)]
        self.thresholds = np.quantile(values[:, many], levels, axis=0).T.astype(np.float32)
        self.layout = layout
        empty = np.zeros((len(table.x), 0), np.float32)
        self.indicators = empty if layout is None else map_rows(Method(layout, "indicators"), table.x)

    def __len__(self):
        return self.columns.n_inputs + self.thresholds.size + self.indicators.shape[1]

    def at(self, rows, chosen=None):
        """Inputs (rows, all or the chosen ones) of some rows."""
        chosen = np.arange(len(self)) if chosen is None else chosen
        n_columns, n_steps = self.columns.n_inputs, self.thresholds.size
        plain, shown = chosen[chosen < n_columns], chosen[chosen >= n_columns + n_steps] - n_columns - n_steps
        steps = chosen[(chosen >= n_columns) & (chosen < n_columns + n_steps)] - n_columns
        places = np.array(self.columns.many_valued, int)[steps // THRESHOLDS]
        values = self.columns.values[rows]
        above = np.tanh((values[:, places] - self.thresholds.ravel()[steps]) / WIDTH)
        return np.hstack([values[:, plain], above, self.indicators[rows][:, shown]]).astype(np.float64)

    def owners(self):
        """The column or indicator that each input is made from."""
        n_columns, n_indicators = self.columns.n_inputs, self.indicators.shape[1]
        steps = np.repeat(np.array(self.columns.many_valued, int), THRESHOLDS)
        return np.concatenate([np.arange(n_columns), steps, n_columns + np.arange(n_indicators)])

    def network(self, weights, bias):
        """The additive model as a network of one layer."""
        slopes = np.full(self.thresholds.shape, 1 / WIDTH)
        return ColumnNetwork(
            leaf(self.thresholds), leaf(slopes), leaf(self.columns.rotation),
            Network((leaf(weights),), (leaf(bias),)), self.columns.many_valued, self.layout,
        )  # fmt: skip


def fit_additive(table, splits, layout, n_classes):
    """The mean of the models of all splits as a network, and logits of the rows that each split holds out.

    `table` is a `LabelledRow` of arrays. The logits are in the order of the splits' held-out rows.
    """
    inputs = AdditiveInputs(table, layout)
    learned = some_of_each(table.label, max(MAX_CELLS // (len(inputs) * n_classes), LEAST_ROWS))
    given = np.ones(len(table.label)) if table.weight is None else table.weight.astype(np.float64)
    counts, kept_counts = (np.bincount(own, minlength=n_classes) for own in (table.label, table.label[learned]))
    weights = given * (counts / np.maximum(kept_counts, 1))[table.label]  # those of the whole table
    strengths, models, losses = STRENGTHS, [], dict.fromkeys(STRENGTHS, 0.0)
    for number, split in enumerate(splits):
        rows = learned[np.isin(learned, split.kept)]
        chosen = _affordable(inputs, rows, table.label[rows], weights[rows], n_classes)
        seen, found = inputs.at(rows, chosen), {}
        for strength in strengths:
            found[strength] = np.zeros((len(inputs) + 1, n_classes))
            found[strength][[*chosen, -1]] = _one_against_rest(
                seen, table.label[rows], weights[rows], n_classes, strength
            )
            if len(strengths) > 1:
                logs = log_softmax(_logits(inputs, found[strength], split.held), axis=1)
                losses[strength] -= given[split.held] @ logs[np.arange(len(logs)), table.label[split.held]]
        models.append(found)
        if number + 1 == min(PATH_SPLITS, len(splits)):
            strengths = (min(strengths, key=losses.__getitem__),)
    best = [found[strengths[0]] for found in models]
    logits = [_logits(inputs, model, split.held) for model, split in zip(best, splits, strict=True)]
    mean = np.mean(best, axis=0)
    return inputs.network(mean[:-1], mean[-1]), np.concatenate(logits)


def _affordable(inputs, rows, labels, weights, n_classes):
    """Inputs to learn from these rows: all, or those of the columns that tell most where all would take too long."""
    n_inputs = max(MAX_CELLS // (len(rows) * n_classes), 1)
    if n_inputs >= len(inputs):
        return np.arange(len(inputs))
    gains = column_gains(np.hstack([inputs.columns.values[rows], inputs.indicators[rows]]), labels, weights)
    owners = inputs.owners()
    return np.sort(np.lexsort([owners, -gains[owners]])[:n_inputs])


def _one_against_rest(rows, labels, weights, n_classes, strength):
    """Weights and, last, the constant of each class (inputs + 1, classes), for the rows of the class and the others."""
    found = np.zeros((rows.shape[1] + 1, n_classes))
    for k in range(1 if n_classes == 2 else 0, n_classes):
        share = weights[labels == k].sum() / weights.sum()
        if 0 < share < 1:
            model = sparse_logistic(strength).fit(rows, labels == k, sample_weight=weights)
            found[:-1, k], found[-1, k] = model.coef_[0], model.intercept_[0]
        else:
            found[-1, k] = np.log(len(rows) if share else 1 / len(rows))
    return found


def _logits(inputs, model, rows):
    """Logits of some rows, by the inputs that have a weight."""
    used = np.flatnonzero(np.abs(model[:-1]).sum(axis=1))
    return inputs.at(rows, used) @ model[used] + model[-1]
