"""Rows as the functions of fitted classifiers take them: points of numbers, or flat rows of mixed tables.

`explain`, `boundary_distance` and `counterfactuals` work on either through the same few methods.
"""

import dataclasses

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method
from scorefield.data.containers import is_frame, replace_cells
from scorefield.data.encoding import TableEncoder
from scorefield.data.spaces import numbers_as_table
from scorefield.explanations.posterior import check_rows, is_score_classifier, logits_function, widened
from scorefield.fields.joint import JointEnergies
from scorefield.inference.functions import OfRawRows, Plus, Times


def view_of(model):
    """How a fitted model sees rows: a `NumericView` or a `MixedView`."""
    if is_score_classifier(model):
        check_is_fitted(model)
        if model.model_.space.layout is not None:
            return MixedView(model)
    return NumericView(model)


def summands(logits):
    """Functions that add up to `logits`: the networks of a joint model, and its rules with their steep thresholds."""
    if isinstance(logits, Method) and isinstance(logits.model, JointEnergies) and logits.model.rules is not None:
        joint = logits.model
        networks = dataclasses.replace(joint, rules=None, share=None)
        rules = dataclasses.replace(networks, members=(joint.rules,))
        shares = ((networks, 1 - joint.share), (rules, joint.share))
        return tuple(Times(Method(part, logits.name), share) for part, share in shares)
    if isinstance(logits, Plus):
        first, *others = summands(logits.function)
        return Plus(first, logits.constant), *others
    if isinstance(logits, Times | OfRawRows):
        return tuple(dataclasses.replace(logits, function=part) for part in summands(logits.function))
    return (logits,)


class _View:
    def names_in(self, X):
        """Names of the columns in a table: positions for an array."""
        return self.names if is_frame(X) else list(range(len(self.names)))


class NumericView(_View):
    """Rows of a model of numbers, whose posterior is a function of points."""

    double = True  # columns may have offsets that single precision cannot hold

    def __init__(self, model):
        self.model = model
        self.function, self.classes = logits_function(model)

    def read(self, X):
        """Points (n, d) of a table; learns the names of its columns."""
        rows = check_rows(self.model, X).astype(np.float64)
        first = self.model[0] if isinstance(self.model, Pipeline) else self.model
        self.names = list(getattr(first, "feature_names_in_", range(rows.shape[1])))
        self.input_columns = np.arange(rows.shape[1])
        return rows

    def inputs(self, rows):
        """What `input_logits` takes."""
        return rows

    def input_logits(self):
        """Log posteriors as a jax function of the inputs, whose columns are `input_columns`."""
        return widened(self.function)

    row_logits = input_logits

    def known_rows(self):
        """Some fitted rows of each class."""
        if not is_score_classifier(self.model):
            name = type(self.model).__name__
            raise ValueError(f"Expected rows to compare with for {name}, got None; give some as baseline.")
        return self.model.model_.known_rows()

    def table(self, X, rows, changed):
        """The table X, read as rows before, with the `changed` (n, d) cells of these rows."""
        chosen = dict(zip(self.names_in(X), changed.T, strict=True))
        if not is_frame(X):
            X = np.asarray(X)
            return replace_cells(X, rows.astype(X.dtype) if X.dtype.kind == "f" else rows, chosen)
        encoder = self.model.model_.space.encoder if is_score_classifier(self.model) else None
        encoder = encoder or TableEncoder().fit(X)
        return replace_cells(X, numbers_as_table(encoder, rows, X), chosen)


class MixedView(_View):
    """Rows of a model of a mixed table: flat rows, see `scorefield.fields.rows`."""

    double = False

    def __init__(self, model):
        self.model, self.classes, self.space = model, model.classes_, model.model_.space
        self.names = [column.name for column in self.space.encoder.columns_]
        places = np.array([self.names.index(name) for name in self.space.names])
        self.input_columns = places[self.space.layout.input_columns]

    def read(self, X):
        """Flat rows of a table."""
        return self.space.rows(X)

    def inputs(self, rows):
        """What `input_logits` takes."""
        return map_rows(Method(self.space.layout, "inputs"), rows)

    def input_logits(self):
        """Log posteriors as a jax function of the inputs, whose columns are `input_columns`."""
        return self.model.model_.posterior(self.model.prior_shift_, "logits_at_inputs")

    def row_logits(self):
        """Log posteriors as a jax function of flat rows."""
        return self.model.model_.posterior(self.model.prior_shift_)

    def known_rows(self):
        """Some fitted rows of each class."""
        return self.model.model_.known_rows()

    def table(self, X, rows, changed):
        """The table X, read as rows before, with the `changed` (n, columns) cells of these rows."""
        return replace_cells(X, self.space.table(rows, X), dict(zip(self.names_in(X), changed.T, strict=True)))
