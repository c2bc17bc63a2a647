"""A sparse model of the labels: what single columns tell of them, and what a few tell together by thresholds.

Its logits are a weighted sum of columns, of smooth steps at their quantiles, of indicators of levels, and of rules such
as "this column is above 2 and that level is present". Rules are the nodes of a few boosted trees, made smooth, and a
penalty on absolute weights leaves most weights at zero (RuleFit, Friedman & Popescu 2008). Where few of many columns
decide, or some decide by steps, it needs fewer rows than a network. A classifier gives it the share of its logits that
held-out labels ask for.
"""

import inspect
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_softmax
from sklearn import config_context
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from scorefield._jax.pytrees import leaf
from scorefield.data.association import column_gains, some_of_each
from scorefield.fields.joint import THRESHOLDS, WIDTH, ColumnNetwork, columns_of
from scorefield.fields.networks import Network
from scorefield.training.together import n_threads

QUANTILE_ROWS = 10_000  # rows by which quantiles are told well enough
STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0)  # of the labels against the penalty
PATH_SPLITS = 2  # models, at most, that try all strengths; the others have the best
SHARED_BY = 3  # splits at most that share a model
MAX_CELLS = 3_000_000  # numbers of rows, inputs and models, multiplied: about .2 seconds a fit
PILOT_STRENGTH = 0.1  # of the model that rows of larger tables are chosen by
BLOCK_ROWS = 1 << 14  # rows that are predicted at a time
LEAST_ROWS = 1000  # where cells exceed MAX_CELLS, rows are left out down to this number, then columns
TREES = 10  # of all classes
LEAST_TREES = 2  # of a class
TREE = {"max_depth": 4, "min_samples_leaf": 5, "max_features": 0.75, "subsample": 0.5, "learning_rate": 0.2}
TRUSTED = {"assume_finite": True, "skip_parameter_validation": True}  # small fits, for which checks take long
LEAST_WEIGHT = 0.05  # of a rule, in log odds; rules of less weight are dropped
RULE_WIDTH = 0.02  # of a threshold of a rule, in standard deviations
SHARPNESS = 6.0  # of the smooth "and": silu(SHARPNESS u) / SHARPNESS is about max(u, 0)
LEAST_SIZE = 64  # of the parts of the network, which are powers of two: fits of one table share their programs


class RuleInputs:
    """Columns, steps and indicators of a labelled table, as its rule model sees them."""

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
        self.indicators = empty if layout is None else layout.indicators(np.asarray(table.x))

    def __len__(self):
        return self.columns.n_inputs + self.thresholds.size + self.indicators.shape[1]

    def at(self, rows, chosen=None):
        """Inputs (rows, all or the chosen ones) of some rows: columns, then steps, then indicators."""
        chosen = np.arange(len(self)) if chosen is None else chosen
        n_columns, n_steps = self.columns.n_inputs, self.thresholds.size
        plain, shown = chosen[chosen < n_columns], chosen[chosen >= n_columns + n_steps] - n_columns - n_steps
        places, thresholds = self.steps(chosen[(chosen >= n_columns) & (chosen < n_columns + n_steps)] - n_columns)
        values = self.columns.values[rows]
        above = np.tanh((values[:, places] - thresholds) / WIDTH)
        return np.hstack([values[:, plain], above, self.indicators[rows][:, shown]]).astype(np.float64)

    def steps(self, chosen):
        """Columns and thresholds of the steps of these numbers."""
        return np.array(self.columns.many_valued, int)[chosen // THRESHOLDS], self.thresholds.ravel()[chosen]

    def owners(self):
        """The column or indicator that each input is made from."""
        n_columns, n_indicators = self.columns.n_inputs, self.indicators.shape[1]
        steps = np.repeat(np.array(self.columns.many_valued, int), THRESHOLDS)
        return np.concatenate([np.arange(n_columns), steps, n_columns + np.arange(n_indicators)])

    def single(self, rows):
        """Columns and indicators of some rows."""
        return np.hstack([self.columns.values[rows], self.indicators[rows]])


class Rules(NamedTuple):
    """Smooth rules: all of a rule's conditions hold, each of which asks for one side of a threshold."""

    columns: np.ndarray  # of the conditions (m,): of the numbers, and beyond them of the indicators
    thresholds: np.ndarray  # (m,)
    sides: np.ndarray  # (m, rules): 1 for above, -1 for below, 0 for no condition of the rule

    def at(self, single, n_numbers):
        """Values (n, rules) between about 0 and 1 of rows of columns and indicators."""
        conditions = single[:, self.columns].astype(np.float64)
        numbers = self.columns < n_numbers
        conditions[:, numbers] = np.tanh((conditions[:, numbers] - self.thresholds[numbers]) / RULE_WIDTH)
        conditions[:, ~numbers] = 2 * conditions[:, ~numbers] - 1
        u = conditions @ self.sides + self.biases()
        return u * expit(SHARPNESS * u)

    def biases(self):
        """One less than the conditions that must hold, below zero."""
        return 1.0 - np.abs(self.sides).sum(axis=0)

    def chosen(self, rules):
        """Some of the rules, with the conditions that they have."""
        sides = self.sides[:, rules]
        used = np.flatnonzero(np.abs(sides).sum(axis=1))
        return Rules(self.columns[used], self.thresholds[used], sides[used])


class SplitModel(NamedTuple):
    """A model of the rows of one split: weights of the inputs and, last, constants (inputs + 1, classes), and rules."""

    weights: np.ndarray
    rules: list[tuple[int, Rules, np.ndarray]]  # the class, its rules and their weights

    def logits(self, inputs, rows):
        """Logits (rows, classes) of some rows, by what has a weight."""
        used = np.flatnonzero(np.abs(self.weights[:-1]).sum(axis=1))
        found = inputs.at(rows, used) @ self.weights[used] + self.weights[-1]
        single = inputs.single(rows)
        for k, rules, weights in self.rules:
            found[:, k] += rules.at(single, inputs.columns.n_inputs) @ weights
        return found


def fit_rules(table, splits, layout, n_classes, shared=False):
    """The mean of the models of all splits as a network, and logits of the rows that each split holds out.

    `table` is a `LabelledRow` of arrays. With `shared` a few splits have one model, of rows that none of them holds
    out: of a large table models see a part anyway. The logits are in the order of the splits' held-out rows.
    """
    inputs = RuleInputs(table, layout)
    given = np.ones(len(table.label)) if table.weight is None else table.weight.astype(np.float64)
    learned, weights = choose_rows(inputs, table.label, given, n_classes)
    n_groups = -(-len(splits) // SHARED_BY) if shared else len(splits)
    groups = [splits[group::n_groups] for group in range(n_groups)]

    def begin(number):
        kept = np.logical_and.reduce([np.isin(learned, split.kept) for split in groups[number]])
        return SplitRows(inputs, learned[kept], table.label[learned[kept]], weights[kept], n_classes, seed=number)

    def loss(model, split):
        return -given[split.held] @ _own_log_shares(model, inputs, split.held, table.label[split.held])

    with ThreadPoolExecutor(n_threads()) as pool:  # trees alone: liblinear's random numbers are those of the process
        parts = list(pool.map(begin, range(len(groups))))
    n_first = min(PATH_SPLITS, len(groups))
    first = [part.fit(STRENGTHS) for part in parts[:n_first]]
    losses = [sum(loss(first[m][s], groups[m][0]) for m in range(n_first)) for s in range(len(STRENGTHS))]
    best = int(np.argmin(losses))
    models = [found[best] for found in first] + [part.fit(STRENGTHS[best : best + 1])[0] for part in parts[n_first:]]
    logits = [models[m % len(models)].logits(inputs, split.held) for m, split in enumerate(splits)]
    return mean_network(inputs, models), np.concatenate(logits)


def choose_rows(inputs, labels, sample_weight, n_classes):
    """Indices of the rows to learn from, and their weights, by which they stand for the table.

    Where all would take too long, half of them are drawn as `some_of_each` does and half by the error of a first model:
    among a hundred thousand common rows few are near the rare ones, and these tell most (Wang, Zhu & Ma 2018).
    """
    rows = np.flatnonzero(sample_weight > 0)
    most = max(MAX_CELLS // (len(inputs) * n_models(n_classes)), LEAST_ROWS)
    if len(rows) <= most:
        return rows, sample_weight[rows]
    labels, sample_weight = labels[rows], sample_weight[rows]
    counts = np.bincount(labels, minlength=n_classes)
    by_class = np.minimum(most / n_classes / counts[labels], 1.0)
    first = some_of_each(labels, most // 2)
    pilot = SplitRows(inputs, rows[first], labels[first], np.ones(len(first)), n_classes, seed=0)
    pilot = pilot.fit([PILOT_STRENGTH])[0]
    # As in a case-control sample, constants alone tell the odds of the first rows from those of the table.
    pilot.weights[-1] += np.log(np.maximum(counts, 1) / np.maximum(np.bincount(labels[first], minlength=n_classes), 1))
    errors = -np.expm1(_own_log_shares(pilot, inputs, rows, labels))
    by_error = _chances(sample_weight * errors, most)
    chances = np.where(by_class == 1, 1.0, (by_class + by_error) / 2)
    chosen = np.random.default_rng(1).uniform(size=len(rows)) < chances
    return rows[chosen], (sample_weight / chances)[chosen]


def _own_log_shares(model, inputs, rows, labels):
    """Log probabilities of the rows' own labels, in blocks, which bound the memory."""
    found = np.empty(len(rows))
    for start in range(0, len(rows), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        logs = log_softmax(model.logits(inputs, rows[block]), axis=1)
        found[block] = logs[np.arange(len(logs)), labels[block]]
    return found


def _chances(sizes, total):
    """Chances in proportion to the sizes, at most one, with a given sum."""
    certain = np.zeros(len(sizes), bool)
    while True:
        scaled = sizes * max(total - certain.sum(), 0) / max(sizes[~certain].sum(), 1e-300)
        beyond = ~certain & (scaled > 1)
        if not beyond.any():
            return np.where(certain, 1.0, scaled)
        certain |= beyond


def n_models(n_classes):
    """Number of models of one class against the others."""
    return 1 if n_classes == 2 else n_classes


class SplitRows:
    """Rows to learn from, with the rules of each class: in turn every class stands against the others."""

    def __init__(self, inputs, rows, labels, weights, n_classes, seed):
        self.labels, self.weights = labels, weights
        self.chosen, self.shape = _affordable(inputs, rows, labels, weights, n_classes), (len(inputs) + 1, n_classes)
        self.plain, single = inputs.at(rows, self.chosen), inputs.single(rows)
        self.shares = np.bincount(labels, weights, n_classes) / weights.sum()
        self.rules = {}  # of each class, with their values
        n_trees = max(TREES // n_models(n_classes), LEAST_TREES)
        for k in range(1 if n_classes == 2 else 0, n_classes):
            if 0 < self.shares[k] < 1:
                rules = grow_rules(single, labels == k, weights, n_trees, inputs.owners()[self.chosen], seed)
                self.rules[k] = rules, rules.at(single, inputs.columns.n_inputs)

    def fit(self, strengths):
        """Models, one for each strength."""
        models = [SplitModel(np.zeros(self.shape), []) for _ in strengths]
        n_rows, n_chosen = self.plain.shape
        for k, (rules, values) in self.rules.items():
            seen = np.hstack([self.plain, values])
            for model, strength in zip(models, strengths, strict=True):
                with config_context(**TRUSTED):
                    fitted = sparse_logistic(strength).fit(seen, self.labels == k, sample_weight=self.weights)
                found = fitted.coef_[0]
                model.weights[self.chosen, k], model.weights[-1, k] = found[:n_chosen], fitted.intercept_[0]
                used = np.flatnonzero(np.abs(found[n_chosen:]) > LEAST_WEIGHT)
                model.rules.append((k, rules.chosen(used), found[n_chosen:][used]))
        for model in models:  # classes that have all rows, or none
            model.weights[-1, self.shares == 0] = -np.log(n_rows)
            if len(self.shares) > 2:
                model.weights[-1, self.shares == 1] = np.log(n_rows)
        return models


def grow_rules(single, labels, weights, n_trees, columns, seed):
    """The nodes of boosted trees on these columns of the rows as rules."""
    columns = np.unique(columns)
    trees = GradientBoostingClassifier(n_estimators=n_trees, random_state=seed, **TREE)
    with config_context(**TRUSTED):
        trees.fit(single[:, columns], labels, sample_weight=weights)
    paths = dict.fromkeys(path for tree in trees.estimators_[:, 0] for path in _paths(tree.tree_))
    conditions = list(dict.fromkeys((column, threshold) for path in paths for column, threshold, _ in path))
    place = {condition: i for i, condition in enumerate(conditions)}
    sides = np.zeros((len(conditions), len(paths)))
    for j, path in enumerate(paths):
        for column, threshold, side in path:
            sides[place[column, threshold], j] = side
    found = np.array([column for column, _ in conditions], int)
    return Rules(columns[found], np.array([threshold for _, threshold in conditions], float), sides)


def _paths(tree):
    """Conditions (column, threshold, side) that lead to each node of a tree but its root."""
    paths = {0: ()}
    for node in range(tree.node_count):  # parents come before their children
        if tree.children_left[node] >= 0:
            condition = int(tree.feature[node]), float(tree.threshold[node])
            paths[tree.children_left[node]] = (*paths[node], (*condition, -1))
            paths[tree.children_right[node]] = (*paths[node], (*condition, 1))
    del paths[0]
    return map(tuple, map(sorted, paths.values()))


def _affordable(inputs, rows, labels, weights, n_classes):
    """Inputs to learn from these rows: all, or those of the columns that tell most where all would take too long."""
    n_inputs = max(MAX_CELLS // (len(rows) * n_models(n_classes)), 1)
    if n_inputs >= len(inputs):
        return np.arange(len(inputs))
    gains = column_gains(inputs.single(rows), labels, weights)
    owners = inputs.owners()
    return np.sort(np.lexsort([owners, -gains[owners]])[:n_inputs])


def mean_network(inputs, models):
    """The mean of the models' logits as a network with one hidden layer.

    Each class has two hidden units for what is linear in the inputs, u and -u: silu(u) - silu(-u) is u. The others are
    rules. Each step that has a weight has a copy of its column: of a model, shapes tell no more than its size.
    """
    weights = np.mean([model.weights for model in models], axis=0)
    n_columns, n_indicators, n_classes = inputs.columns.n_inputs, inputs.indicators.shape[1], weights.shape[1]
    linear, beyond = weights[:n_columns], n_columns + inputs.thresholds.size
    used = np.flatnonzero(np.abs(weights[n_columns:beyond]).sum(axis=1))
    rules = [(k, own, found / len(models)) for model in models for k, own, found in model.rules]
    each = [np.column_stack([*inputs.steps(used), np.full(len(used), 1 / WIDTH)])]
    each += [_number_steps(own, n_columns) for _, own, _ in rules]
    steps, places = np.unique(np.concatenate(each), axis=0, return_inverse=True)
    places = np.split(places.ravel(), np.cumsum([len(own) for own in each])[:-1])
    n_steps = _size(len(steps)) if n_columns else 0
    n_hidden = _size(2 * n_classes + sum(len(found) for *_, found in rules))
    first, last = np.zeros((n_columns + 2 * n_steps + n_indicators, n_hidden)), np.zeros((n_hidden, n_classes))
    bias, at_steps, at_indicators = np.zeros(n_hidden), n_columns + n_steps, n_columns + 2 * n_steps
    for sign, units in ((1, slice(n_classes)), (-1, slice(n_classes, 2 * n_classes))):
        first[:n_columns, units] = sign * linear
        first[at_steps + places[0], units] = sign * weights[n_columns:beyond][used]
        first[at_indicators:, units] = sign * weights[beyond:-1]
        last[units] = sign * np.eye(n_classes)
        bias[units] = sign * weights[-1]
    unit = 2 * n_classes
    for (k, own, found), own_places in zip(rules, places[1:], strict=True):
        units, numbers = slice(unit, unit + len(found)), own.columns < n_columns
        sides, shown = SHARPNESS * own.sides, own.columns[~numbers] - n_columns
        first[at_steps + own_places, units] = sides[numbers]
        first[at_indicators + shown, units] = 2 * sides[~numbers]
        bias[units] = SHARPNESS * own.biases() - sides[~numbers].sum(axis=0)
        last[units, k] = found / SHARPNESS
        unit += len(found)
    copies = np.zeros((n_columns, n_steps))
    copies[steps[:, 0].astype(int), np.arange(len(steps))] = 1.0
    padded = np.zeros((2, n_steps, 1))
    padded[:, : len(steps), 0] = steps.T[1:]
    network = Network((leaf(first), leaf(last)), (leaf(bias), leaf(np.zeros(n_classes))))
    stepped = tuple(range(n_columns, n_columns + n_steps))
    return ColumnNetwork(leaf(padded[0]), leaf(padded[1]), leaf(copies), network, stepped, inputs.layout)


def _number_steps(rules, n_columns):
    """Columns, thresholds and slopes (m, 3) of the conditions on numbers."""
    numbers = rules.columns < n_columns
    return np.column_stack([rules.columns[numbers], rules.thresholds[numbers], np.full(numbers.sum(), 1 / RULE_WIDTH)])


def _size(n):
    """The next power of two."""
    return max(1 << (max(n, 1) - 1).bit_length(), LEAST_SIZE)


def sparse_logistic(strength):
    """Logistic regression with a penalty on absolute weights, against which the labels have the strength."""
    old = inspect.signature(LogisticRegression).parameters["penalty"].default == "l2"  # before scikit-learn 1.8
    penalty = {"penalty": "l1"} if old else {"l1_ratio": 1.0}
    return LogisticRegression(C=strength, solver="liblinear", tol=1e-2, random_state=0, **penalty)
