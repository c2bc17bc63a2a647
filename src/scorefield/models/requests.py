"""Rows on request from any model: drawn, completed and checked until there are enough.

Plain draws of which a good share meets a request have its law exactly; where most would be wasted, chains are guided.
"""

import functools

import jax
import numpy as np

from scorefield._jax.pytrees import Method
from scorefield._jax.random import Stream, host_rng, key_from
from scorefield.data.containers import append_rows, take_rows
from scorefield.data.encoding import Encoded, TableEncoder
from scorefield.data.relations import is_triple
from scorefield.data.row_requests import RowRequest
from scorefield.data.row_space import RowSpace
from scorefield.data.scaling import NormalScores
from scorefield.fields.joint import AnyClass, ClassEnergy
from scorefield.models.requested_numbers import NumberEnergy, requested_numbers
from scorefield.models.requested_rows import requested_rows

WORTH_DRAWING = 0.25  # share of plain draws that meet a request, from which rejection is no dearer than guided chains
FIRST_DRAWN, MOST_DRAWN = 256, 1 << 13  # rows at a time; fewer than the first are padded to as many
HOPELESS_DRAWS = 1024  # rows after which a request that next to none of them meets is given up
LEAST_KEPT = 0.005


def rows_on_request(key, n, request, plain, guided, ids="new"):
    """n rows as a table, with their classes (None for rows of one class), that meet a `RowRequest`.

    `plain` and `guided` are functions of a key and a number of rows that return a table without identifiers, and
    classes; `guided` is None where there is no energy to follow. `ids` are "new" or "blank".
    """
    held = request.holds_numbers
    if held and guided is None:
        raise ValueError(
            "Expected bounds or levels as conditions for a model without an energy, whose rows are drawn and kept or "
            f"not, got numbers to hold in {request}; use ScoreDensity's model 'gaussian', 'mixture', 'kernel' or "
            "'energy', or give bounds."
        )
    rng, tables, classes, n_kept, n_drawn = host_rng(key, Stream.POOLED_LEVELS), [], [], 0, 0
    while n_kept < n:
        key, own_key = jax.random.split(key)
        rate = n_kept / n_drawn if n_kept else 1.0
        size = int(np.clip((n - n_kept) / rate, FIRST_DRAWN, MOST_DRAWN))
        table, own = (guided if held else plain)(own_key, size)
        table = request.completed(table, hold=held, rng=rng)
        kept = np.flatnonzero(request.met(table) & request.possible(table))[: n - n_kept]
        if not held and guided is not None and not tables and len(kept) < WORTH_DRAWING * min(size, n):
            held = True
            continue
        tables.append(take_rows(table, kept))
        classes.append(None if own is None else own[kept])
        n_kept, n_drawn = n_kept + len(kept), n_drawn + size
        if n_kept < n and n_drawn >= HOPELESS_DRAWS and n_kept < LEAST_KEPT * n_drawn:
            raise ValueError(
                f"Expected conditions that rows can meet together, got {request}, which {n_kept} of {n_drawn:,} drawn "
                "rows meet; ask for less."
            )
    whole = functools.reduce(append_rows, tables)
    whole = whole.reset_index(drop=True) if hasattr(whole, "iloc") else whole
    whole = request.with_new_keys(whole, rng) if ids == "new" else whole
    return whole, None if classes[0] is None else np.concatenate(classes)


def of_all_classes(draw, key, shares, n):
    """n rows of a model with classes drawn by their shares, and the classes; `draw` takes a seed, n and a class."""
    rng = host_rng(key, Stream.DRAWN_LABELS)
    counts = rng.multinomial(n, shares)
    present = np.flatnonzero(counts)
    tables = [draw(int(rng.integers(np.iinfo(np.int32).max)), int(counts[k]), int(k)) for k in present]
    order = rng.permutation(n)
    return take_rows(functools.reduce(append_rows, tables), order), np.repeat(present, counts[present])[order]


class ModelRequests:
    """How rows on request are drawn from a `TableModel`.

    Parameters
    ----------
    model : TableModel
    shift : array (classes,)
        What is added to its log posteriors, for other class shares than those of the fitted rows.
    """

    def __init__(self, model, shift=0.0):
        self.model, self.n_classes = model, len(model.frequencies)
        self.shift = np.broadcast_to(shift, self.n_classes)
        shares = np.asarray(model.frequencies) * np.exp(self.shift)
        self.shares = shares / shares.sum()

    def request(self, given, constraints):
        """A `RowRequest` for the columns of the model; constraints that fitted rows violate are refused."""
        known = self.model.known_rows() if self._has_rows() else None
        return request_for(self.model.space, known, given, constraints, lambda: self._of_class(0, FIRST_DRAWN, 0))

    def _has_rows(self):
        return all(hasattr(density, "known_rows") for density in getattr(self.model, "densities", ()))

    def sample(self, seed, n, given=None, constraints=None, label=None, ids="new"):
        """A table of n rows that meet a request, of one class or of all, and the classes of all (None of one)."""
        request, key = self.request(given, constraints), key_from(seed)

        def plain(key, m):
            if label is None:
                return of_all_classes(self._of_class, key, self.shares, m)
            return self._of_class(key_seed(key), m, label), None

        return rows_on_request(key, n, request, plain, self._guided(request, label), ids)

    def _of_class(self, seed, n, label):
        """A table of n rows of a class, without identifiers."""
        return self.model.generated(seed, n, label, "blank")

    def _guided(self, request, label):
        """A function of a key and a number of rows, None where the model has no energy to follow."""
        if self.model.space.layout is not None:
            return functools.partial(self._mixed, request, label)
        energies, log_weights = self._number_energies()
        if energies is None:
            return None
        if label is not None:
            energies, log_weights = [energies[label]], [0.0]

        def guided(key, m):
            rows, classes = requested_numbers(key, energies, log_weights, request, m)
            return self.model.space.table(rows), classes if label is None else None

        return guided

    def _mixed(self, request, label, key, m):
        """Chains of the energy of one class, or of all with classes by the posterior."""
        model = self.model
        if label is not None:
            energy, bases = ClassEnergy(model.joint, np.int32(label)), model.start_rows[label]
            rows = requested_rows(key, model, energy, bases, np.zeros(len(bases)), request, m)
            return model.space.table(rows, rng=host_rng(key, Stream.POOLED_LEVELS)), None
        offsets = (model.class_constants() + self.shift).astype(np.float32)
        bases, sizes = np.concatenate(model.start_rows), [len(rows) for rows in model.start_rows]
        weights = np.repeat(np.log(self.shares) - np.log(sizes), sizes)
        rows = requested_rows(key, model, AnyClass(model.joint, offsets), bases, weights, request, m)
        logits = model.logits(rows) + self.shift
        gumbel = host_rng(key, Stream.DRAWN_LABELS).gumbel(size=logits.shape)
        return model.space.table(rows, rng=host_rng(key, Stream.POOLED_LEVELS)), np.argmax(logits + gumbel, axis=1)

    def _number_energies(self):
        """Energies of the classes with log weights that make them comparable."""
        model = self.model
        if hasattr(model, "densities"):
            found = [
                density.number_energy() if hasattr(density, "number_energy") else None for density in model.densities
            ]
            if None in found:
                return None, None
            return found, np.log(self.shares) + [energy.log_constant for energy in found]
        energies = [
            NumberEnergy(
                Method(ClassEnergy(model.joint, np.int32(k)), "potential"), *model.space.units, rows, model.n_members
            )
            for k, rows in enumerate(model.start_rows)
        ]
        return energies, np.broadcast_to(model.class_constants(), self.n_classes) + self.shift


def request_for(space, known_rows, given, constraints, drawn=None):
    """A `RowRequest` for tables of a space; constraints that the known rows of its classes violate are refused.

    Without known rows the columns are those of the table that `drawn` makes.
    """
    if known_rows is None:
        encoder = TableEncoder().fit(drawn()) if space.encoder is None else space.encoder
        return RowRequest(encoder, given, constraints)
    if space.layout is not None:
        ends = np.array([knots[0, [0, -1]] for knots in space.scores.knots]).reshape(-1, 2).T
        codes = np.zeros((2, len(space.encoder.level_values)), np.int32)
        seen = space.encoder.decode(Encoded(ends, codes), rng=0)
        request = RowRequest(space.encoder, given, constraints, seen)
        fitted = _as_fitted(space).table(np.concatenate(known_rows), rng=0)
    else:
        fitted = space.table(np.concatenate(known_rows))
        encoder = TableEncoder().fit(fitted) if space.encoder is None else space.encoder
        request = RowRequest(encoder, given, constraints, fitted)
    request.refuse_violations(fitted, "fitted rows", rounded=True)
    return request


def _as_fitted(space):
    """The space whose tables have the numbers that rows were made of; generated ones repeat what many rows share."""
    scores = NormalScores([np.stack([knots[0], knots[1], knots[1], knots[1]]) for knots in space.scores.knots])
    return RowSpace(space.encoder, scores, space.precision, space.ties)


def check_constraints(space, X, constraints):
    """Refuse constraints that cannot be read, and those that rows of the table X violate."""
    if constraints is not None:
        encoder = TableEncoder().fit(X) if space.encoder is None else space.encoder
        RowRequest(encoder, None, constraints).refuse_violations(X)


def joined_constraints(*parts):
    """Constraints of an estimator and of a call as one list."""
    joined = []
    for part in parts:
        single = isinstance(part, str) or (isinstance(part, tuple) and is_triple(part))
        joined += [] if part is None else [part] if single else list(part)
    return joined


def check_n_rows(n):
    """Refuse a number of rows below one."""
    if n < 1:
        raise ValueError(f"Expected n >= 1 rows to generate, got {n}.")


def key_seed(key):
    """An integer seed from a key."""
    return int(host_rng(key, Stream.DRAWN_LABELS).integers(np.iinfo(np.int32).max))
