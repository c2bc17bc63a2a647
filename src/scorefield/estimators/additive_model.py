"""A sparse additive model of the labels: what single columns tell of them, with steps where trees would have some.

Its logits are a weighted sum of columns, of smooth steps at their quantiles and of indicators of levels; a penalty on
absolute weights leaves most of them at zero (Tibshirani 1996). Where few of many columns decide, or one decides by a
step, it needs fewer rows than a network. A classifier gives it the share of its logits that held-out labels ask for.
"""

import numpy as np

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method, leaf
from scorefield.data.association import column_gains, some_of_each
from scorefield.estimators._sklearn import sparse_logistic
from scorefield.fields.joint import ColumnNetwork, columns_of
from scorefield.fields.networks import Network

STEPS = 8  # per column, at quantiles
WIDTH = 0.3  # of a step, in standard deviations
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
        levels, some = (np.arange(STEPS) + 0.5) / STEPS, slice(None, None, 1 + len(table.x) // QUANTILE_ROWS)
        self.thresholds = np.quantile(self.columns.values[some][:, many], levels, axis=0).T.astype(np.float32)
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
        places = np.array(self.columns.many_valued, int)[steps // STEPS]
        values = self.columns.values[rows]
        above = np.tanh((values[:, places] - self.thresholds.ravel()[steps]) / WIDTH)
        return np.hstack([values[:, plain], above, self.indicators[rows][:, shown]]).astype(np.float64)

    def owners(self):
        """The column or indicator that each input is made from."""
        n_columns, n_indicators = self.columns.n_inputs, self.indicators.shape[1]
        steps = np.repeat(np.array(self.columns.many_valued, int), STEPS)
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
    learned, chosen = _affordable(inputs, table.label, n_classes)
    weights = np.bincount(table.label) / np.maximum(np.bincount(table.label[learned], minlength=n_classes), 1)
    weights = weights[table.label] * (1.0 if table.weight is None else table.weight)
    seen = inputs.at(learned, chosen)
    strengths, models, logits = STRENGTHS, [], []
    losses = dict.fromkeys(strengths, 0.0)
    for number, split in enumerate(splits):
        kept = np.isin(learned, split.kept)
        rows, labels, own = seen[kept], table.label[learned[kept]], weights[learned[kept]]
        found = {}
        for strength in strengths:
            found[strength] = _one_against_rest(rows, labels, own, n_classes, strength)
            if len(strengths) > 1:
                held = _logits(inputs, found[strength], chosen, split.held)
                losses[strength] += _loss(held, table.label[split.held], weights[split.held])
        models.append(found)
        if number + 1 == min(PATH_SPLITS, len(splits)):
            strengths = (min(strengths, key=losses.__getitem__),)
    best = [found[strengths[0]] for found in models]
    logits = [_logits(inputs, model, chosen, split.held) for model, split in zip(best, splits, strict=True)]
    mean = np.mean(best, axis=0)
    every = np.zeros((len(inputs), n_classes))
    every[chosen] = mean[:-1]
    return inputs.network(every, mean[-1]), np.concatenate(logits)


def _affordable(inputs, labels, n_classes):
    """Rows and inputs to learn from: all, or fewer where that takes too long."""
    most = max(MAX_CELLS // (len(inputs) * n_classes), LEAST_ROWS)
    rows = some_of_each(labels, most)
    n_inputs = MAX_CELLS // (len(rows) * n_classes)
    if n_inputs >= len(inputs):
        return rows, np.arange(len(inputs))
    gains = column_gains(np.hstack([inputs.columns.values, inputs.indicators])[rows], labels[rows])
    owners = inputs.owners()
    strongest = np.lexsort([owners, -gains[owners]])[: max(n_inputs, 1)]
    return rows, np.sort(strongest)


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


def _logits(inputs, model, chosen, rows):
    """Logits of some rows, by the inputs that have a weight."""
    used = np.abs(model[:-1]).sum(axis=1) > 0
    return inputs.at(rows, chosen[used]) @ model[:-1][used] + model[-1]


def _loss(logits, labels, weights):
    """Weighted cross-entropy of the labels."""
    largest = logits.max(axis=1, keepdims=True)
    logs = logits - largest - np.log(np.exp(logits - largest).sum(axis=1, keepdims=True))
    return -weights @ logs[np.arange(len(labels)), labels]
