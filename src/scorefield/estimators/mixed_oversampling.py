"""How `ScoreOverSampler` generates rows of tables with gaps or columns that are not numbers."""

import functools
import itertools

import jax
import numpy as np
from imblearn.utils import check_sampling_strategy, check_target_type
from sklearn.preprocessing import label_binarize
from sklearn.utils.multiclass import check_classification_targets

from scorefield._jax.batching import map_rows
from scorefield._jax.errors import warn_caller
from scorefield._jax.pytrees import Method
from scorefield._jax.random import Stream, host_rng, key_from, seed_from
from scorefield.data.checks import plain
from scorefield.data.containers import append_rows, take_rows
from scorefield.data.row_space import RowSpace
from scorefield.data.splits import same_rows
from scorefield.estimators._imblearn import ArraysTransformer
from scorefield.estimators.density import ScoreDensity, generator_options
from scorefield.estimators.table_input import changed_settings
from scorefield.models.fitting import NOISE, fit_generator
from scorefield.models.progress import ProgressReport
from scorefield.models.row_model import LARGEST_STEP
from scorefield.models.selection import (
    draws_for,
    greatest,
    log_odds,
    most_diverse,
    one_row_warning,
)
from scorefield.sampling.samplers import Langevin

BATCH_ROWS = 1 << 16  # new rows that are drawn and judged at a time
MAX_LEARNED, MAX_OTHERS = 20_000, 10_000  # rows per class, enlarged or not, that mixed rows are learned from
FEW_ROWS = 10  # of a class: below this it is given a shrunk Gaussian, or leans on the other classes


class OverSamplesMixedTables:
    """Mixin of `ScoreOverSampler`: the rows of mixed tables."""

    def _resample_mixed(self, X, y, columns):
        """`fit_resample` of a table with gaps or columns that are not numbers."""
        self._validate_params()
        check_classification_targets(y)
        writer = ArraysTransformer(np.zeros((0, 1)), y)
        labels, binarize = check_target_type(y, indicate_one_vs_all=True)
        labels = self._several_classes(np.asarray(labels))
        self._check_mixed(X, labels)
        self.sampling_strategy_ = check_sampling_strategy(self.sampling_strategy, labels, self._sampling_type)
        rows, more, parents = self._mixed_rows(X, labels, columns)
        y_more = np.concatenate([labels, more])
        self._note_rows(labels, y_more, parents)
        y_more = label_binarize(y_more, classes=np.unique(labels)) if binarize else y_more
        return append_rows(X, rows) if len(more) else X, writer.transform(np.zeros((0, 1)), y_more)[1]

    def _mixed_rows(self, X, labels, columns, keys_of=None, weights=None):
        """New rows as a table like X, their labels, and the indices of their parents.

        Where X is part of a larger table, ``keys_of(names)`` gives the patterns of that table's identifiers by name,
        and ``weights`` are those of the rows for a teacher.
        """
        self.densities_ = {}
        if self.purpose == "learning" and not self._proposes():
            return self._rows_for_learning(X, labels, self._seed(), columns, weights=weights, keys_of=keys_of)
        wanted = {label: n for label, n in self.sampling_strategy_.items() if n}
        if not wanted:
            return None, labels[:0], []
        space = RowSpace.fit(X, columns)
        rows, key = space.rows(X), key_from(self.random_state)
        classes, codes = np.unique(labels, return_inverse=True)
        learned = learned_places(host_rng(key, Stream.START_ROWS), codes, classes, wanted)
        density = self.density or ScoreDensity()
        options = generator_options(density, space, also=("sampler",))
        report = ProgressReport(self, "energy", density.verbose)
        chain = self._mixed_chain(self.sampler or density.sampler, options.get("noise") or NOISE)
        seeded = key if density.random_state is None else key_from(density.random_state)
        model = fit_generator(seeded, space, rows[learned], codes[learned], callback=report, **options)
        report.close(f"energy: weights of steps {[fit['best_step'] for fit in model.history]}")
        self.row_model_ = model
        limits = self._mixed_limits(space, rows)

        def draw(k, n, start):
            own = np.flatnonzero(codes == k)
            own_key = jax.random.fold_in(jax.random.fold_in(key, k), start)
            made, starts = model.sample(own_key, n, k, rows[own], limits, **chain)
            return made, own[starts]

        enlarged = [k for k, label in enumerate(classes) if label in wanted]
        for k in enlarged:
            own = rows[codes == k]
            if same_rows(own).max() == 0:
                warn_caller(one_row_warning(plain(classes[k]), len(own), "shaped by the other classes"))
            elif len(own) < FEW_ROWS:
                warn_caller(
                    f"Class {plain(classes[k])!r} has only {len(own)} rows; new ones lean on the other classes."
                )
        if self.purpose == "learning":
            draws = {
                classes[k]: _as_tables(functools.partial(draw, k), space, X, host_rng(key, Stream.POOLED_LEVELS))
                for k in enlarged
            }
            return self._rows_for_learning(
                X, labels, self._seed(), columns, draws=draws, weights=weights, keys_of=keys_of
            )
        keep = self._keeper_of_mixed(self.where, model, lambda made: space.table(made, X), (X, labels, learned))
        drawn, parents = [], []
        for k in enlarged:
            for start in range(0, wanted[classes[k]], BATCH_ROWS):
                size = min(BATCH_ROWS, wanted[classes[k]] - start)
                many = round(draws_for(self.where) * size)
                made, starts = draw(k, many, start)
                kept = np.arange(many) if many == size else keep(made, rows[codes == k], k, size)
                drawn.append(made[kept])
                parents.append(starts[kept])
        if keys_of is not None and self.ids == "new":
            space.encoder.set_keys(keys_of(space.encoder.identifiers))
        table = space.table(np.concatenate(drawn), X, host_rng(key, Stream.POOLED_LEVELS), self.ids)
        counts = [wanted.get(label, 0) for label in classes]
        return table, np.repeat(classes, counts), parents

    def _keeper_of_mixed(self, where, model, table, examples):
        """A function of flat rows, those of their class, its number and n: the indices of the n rows to keep."""
        if where == "boundary":
            X, labels, learned = examples
            seed = seed_from(self.random_state)
            odds = self._fitted_odds(take_rows(X, learned), labels[learned], seed, self._kinds(X))
            return lambda made, own, k, n: greatest(-np.abs(odds(table(made), k)), n)
        inputs = Method(model.space.layout, "inputs")
        return {
            "everywhere": None,
            "clear": lambda made, own, k, n: greatest(log_odds(model.ratios(made).astype(np.float64), k), n),
            "core": lambda made, own, k, n: greatest(model.energies(made)[:, k], n),
            "diverse": lambda made, own, k, n: most_diverse(map_rows(inputs, made), map_rows(inputs, own), n),
        }[where]

    @staticmethod
    def _mixed_chain(sampler, noise):
        """Step, length and temperature of the chains of mixed rows, from a given Langevin sampler."""
        if sampler is None:
            return {}
        if type(sampler) is not Langevin:
            raise ValueError(
                "Expected sampler to be None or Langevin for a table with gaps or columns that are not numbers, got "
                f"{type(sampler).__name__}."
            )
        n_steps, n_discard = sampler._schedule()
        changed = changed_settings(sampler, but=("step_size", "chain_length", "temperature"))
        if n_steps - n_discard == 1:
            changed.pop("discard", None)
        for name, value in changed.items():
            raise ValueError(
                f"Expected no {name} of Langevin for a table with missing values or columns that are not numbers, "
                f"whose chains start from rows and give one row each, got {name}={value!r}; leave it out."
            )
        step = sampler.step_size / noise**2  # chains of mixed rows step in units of the noise
        if step > LARGEST_STEP:
            warn_caller(
                f"Chains with a step_size of {sampler.step_size} would have diverged; "
                f"{LARGEST_STEP * noise**2:.3g} is used."
            )
        chain = {"step": min(step, LARGEST_STEP), "n_steps": sampler.chain_length}
        return {**chain, "temperature": sampler.temperature}

    def _mixed_limits(self, space, rows):
        """Least and greatest normal scores of generated numbers, or None for no limits."""
        given = self._limits(space.layout.n_numbers)
        if given is not None:
            return tuple(space.scores.transform(limit[None])[0] for limit in given)
        return None if self.bounds is None else space.range_of(rows)


def _as_tables(draw, space, X, rng):
    """A function of n that draws flat rows anew at each call and returns them as a table, with their parents."""
    calls = itertools.count()

    def as_table(n):
        made, parents = draw(n, next(calls))
        return space.table(made, X, rng), parents

    return as_table


def learned_places(rng, codes, classes, wanted):
    """Rows that a model of mixed rows learns from: those of enlarged classes, and as many of the others as help."""
    places = []
    for k, label in enumerate(classes):
        own = np.flatnonzero(codes == k)
        most = MAX_LEARNED if label in wanted else MAX_OTHERS
        places.append(own if len(own) <= most else rng.choice(own, most, replace=False))
    return np.sort(np.concatenate(places))
