"""Where candidates for new rows of a class come from: a density per class, an energy of mixed rows, a teacher's steps.

A source draws rows in its own form (`drawn`) and turns them into tables like the one to be over-sampled (`table`). The
densities and the energy, which know the law of a class, also say which of their rows to keep (`keeper`).
"""

import functools

import jax
import numpy as np

from scorefield._jax.batching import map_rows
from scorefield._jax.errors import warn_caller
from scorefield._jax.pytrees import Method
from scorefield._jax.random import Stream, host_rng, key_from, seed_from
from scorefield.data.checks import cast_numbers, plain
from scorefield.data.containers import is_frame, take_rows
from scorefield.data.encoding import TableEncoder
from scorefield.data.possible_cells import PossibleCells
from scorefield.data.row_space import RowSpace
from scorefield.data.scaling import column_spread, reflected
from scorefield.data.spaces import as_numbers, numbers_as_table
from scorefield.data.splits import same_rows
from scorefield.models.class_densities import class_rng, fit_class_densities
from scorefield.models.fitting import NOISE, fit_generator
from scorefield.models.new_rows import NewRows
from scorefield.models.progress import ProgressReport
from scorefield.models.row_model import LARGEST_STEP
from scorefield.models.selection import greatest, log_odds, most_diverse, one_row_warning, some_places
from scorefield.models.settings import changed_settings, generator_options
from scorefield.models.teachers import probabilities
from scorefield.models.teaching import HARD_STEPS, spread_choice
from scorefield.sampling.samplers import Langevin
from scorefield.training.losses import default_noise

STEP, CHAIN = 0.02, 50  # of Langevin chains from rows to new ones
SHORT_CHAIN = 4  # steps of those that stay near their row
MAX_LEARNED, MAX_OTHERS = 20_000, 10_000  # rows per class, enlarged or not, that rows are learned from
FEW_OF_CLASS = 10  # rows: below it a class is given a shrunk Gaussian, or leans on the other classes
MAX_ASKED = 50_000  # rows whose probabilities are asked for, to start chains from those that may belong to a class
NOISE_OF_ONE_ROW = 0.1  # of each column's spread: only the whole table tells a scale where a class has one row


def varying_columns(rows):
    """Indices of the columns that are not constant."""
    return np.flatnonzero(np.ptp(rows, axis=0) > 0)


def learned_places(rng, codes, classes, wanted):
    """Rows that a model of all classes learns from: those of enlarged classes, and as many of the others as help."""
    places = []
    for k, label in enumerate(classes):
        of_class = np.flatnonzero(codes == k)
        most = MAX_LEARNED if label in wanted else MAX_OTHERS
        places.append(of_class if len(of_class) <= most else rng.choice(of_class, most, replace=False))
    return np.sort(np.concatenate(places))


def _fitted_odds(settings, X, y, seed, columns=None):
    """Log odds of a class, by its number, as a function of a table: those of a classifier fitted to X and y."""
    model = settings.classifier(columns=columns, random_state=seed).fit(X, y)
    return lambda table, k: log_odds(model.predict_log_proba(table).astype(np.float64), k)


def _warn_of_few(label, n, of_one_row=None):
    """Warn of a class of one row, which `of_one_row` says what is made of, or of few rows."""
    if of_one_row:
        warn_caller(one_row_warning(plain(label), n, of_one_row))
    elif n < FEW_OF_CLASS:
        warn_caller(f"Class {plain(label)!r} has only {n} rows; new ones lean on the other classes.")


def possible_cells(task, settings, numbers):
    """What cells of new rows of a table of numbers may be."""
    limits = settings.limits(numbers.shape[1])
    if limits is None and settings.bounds is not None:
        limits = task.ranges()
    return PossibleCells.of_table(task.X, numbers, limits)


def chains_of_class(density, given, near=False):
    """The samplers that share the rows of a class: a given one, or chains of the density, half of them short if `near`.

    A class without a density is given None.
    """
    if given or density is None or density.sampler:
        return [given or getattr(density, "sampler", None)]
    lengths = (CHAIN, SHORT_CHAIN) if near else (CHAIN,)
    return [Langevin(density.safe_step(STEP), chain_length=n, discard=1 - 1 / n) for n in lengths]


class ClassDensities:
    """A density for each enlarged class of a table of numbers; classes of few rows have a shrunk Gaussian."""

    teacher = row_model = None

    def __init__(self, task, settings):
        self.task, self.settings = task, settings
        self.numbers = as_numbers(task.X)
        self.possible = possible_cells(task, settings, self.numbers)
        self.seed = settings.seed()
        self.positions = {label: i for i, (label, n) in enumerate(task.wanted.items()) if n}
        self.places = {label: np.flatnonzero(task.y == label) for label in self.positions}
        self.rngs = {label: class_rng(self.seed, i) for label, i in self.positions.items()}
        self.cell_rngs = {label: np.random.default_rng([self.seed, i, 2]) for label, i in self.positions.items()}
        varying = {label: varying_columns(self.numbers[at]) for label, at in self.places.items()}
        self.varying = {label: columns for label, columns in varying.items() if len(columns)}
        self.densities = self._fitted()
        self.noise = {label: self._noise_of_one_row(label) for label in self.positions if label not in self.varying}

    def _fitted(self):
        """Densities of the classes, each over the columns that vary within it; all are trained together."""
        tables = {label: self.numbers[self.places[label]][:, columns] for label, columns in self.varying.items()}
        densities = []
        for label, rows in tables.items():
            density = self.settings.density_or_default()
            if len(rows) < FEW_OF_CLASS:
                warn_caller(
                    f"Class {plain(label)!r} has only {len(rows)} rows; a Gaussian with shrunk correlations is its "
                    "field."
                )
                density = self.settings.density_class(model="gaussian", noise=default_noise(*rows.shape))
            densities.append(density)
        names, rngs = [plain(label) for label in tables], [self.rngs[label] for label in tables]
        fitted = fit_class_densities(densities, list(tables.values()), names, rngs, normalize=False)
        return dict(zip(tables, fitted, strict=True))

    def _noise_of_one_row(self, label):
        _warn_of_few(label, len(self.places[label]), "a tenth of each column's spread over all classes")
        return NOISE_OF_ONE_ROW * self.task.spread()

    def samplers(self, label):
        """Samplers that share the rows of a class: where clear ones are kept, half of the chains stay near their row.

        Not in columns of few values, where such rows would mostly be copies.
        """
        near = self.settings.where == "clear" and not self.possible.repeats_most(self.numbers[self.places[label]])
        return chains_of_class(self.densities.get(label), self.settings.sampler, near)

    def drawn(self, label, n, rng=None, at=0, sampler=None):
        """Numbers (n, d) of new rows with possible cells, and the indices of their parents, -1 for rows from noise."""
        places = self.places[label]
        rows, size = self.numbers[places], self.possible.rows_to_draw(n)
        made, starts = self._unlimited(label, rows, size, sampler or self.samplers(label)[0])
        cells = self.possible.applied_to(made, rows, self.cell_rngs[label])
        if self.settings.last_is_free:
            cells[:, -1] = made[:, -1]
        return cells[:n], np.where(starts[:n] >= 0, places[starts[:n]], -1)

    def _unlimited(self, label, rows, n, sampler):
        """Numbers (n, d) whatever cells may be, and places of their start rows."""
        rng, varying = self.rngs[label], self.varying.get(label)
        made = rows[rng.integers(0, len(rows), n)]  # columns that are constant within the class stay so
        if varying is None:
            noise = self.noise[label]
            return made + noise * rng.normal(size=(n, len(noise))), rng.integers(0, len(rows), n)
        result = self.densities[label].draw(n, int(rng.integers(1 << 31)), sampler=sampler, X_start=rows[:, varying])
        if result.n_diverged:
            warn_caller(
                f"Class {plain(label)!r}: {result.n_diverged} chains diverged and were replaced with a step size "
                f"of {result.step_size:.3g}; choose a smaller step_size than "
                f"{sampler.get_params().get('step_size')}."
            )
        made[:, varying] = result.rows
        return made, result.parents

    def keeper(self, label):
        """A function of drawn rows and n that gives the indices of the n rows to keep; None keeps all."""
        rows = self.numbers[self.places[label]]
        rng = np.random.default_rng([self.seed, self.positions[label], 1])
        where, density = self.settings.where, self.densities.get(label)
        if where == "clear":
            return self._keeper_of_clear(label, rows, rng)
        if where == "core" and density is not None:
            return lambda made, n: greatest(density.score_samples(made[:, self.varying[label]]), n)
        if where == "boundary":
            return self._keeper_at_boundary(label, rng)
        if where == "diverse":
            scale = column_spread(rows)
            scale = np.where(scale > 0, scale, 1.0)
            return lambda made, n: most_diverse(made / scale, rows / scale, n)
        return None

    def _keeper_of_clear(self, label, rows, rng):
        others = self.task.rivals(label, rng)
        rows = rows[some_places(rng, len(rows), MAX_LEARNED)]
        taught = np.concatenate([others, rows]), np.repeat([0, 1], [len(others), len(rows)])
        odds = _fitted_odds(self.settings, *taught, self.seed)
        return lambda made, n: greatest(odds(made, 1), n)

    def _keeper_at_boundary(self, label, rng):
        y = self.task.y
        self.task.refuse_boundary()
        classes, codes = np.unique(y, return_inverse=True)
        learned = learned_places(rng, codes, classes, self.task.wanted)
        odds = _fitted_odds(self.settings, self.numbers[learned], y[learned], self.seed)
        k = int(np.searchsorted(classes, label))
        return lambda made, n: greatest(-np.abs(odds(made, k)), n)

    def table(self, rows, label=None):
        """Drawn rows as a table like the one that is over-sampled."""
        X = self.task.X
        if not is_frame(X):
            return cast_numbers(rows, X.dtype)
        table = numbers_as_table(TableEncoder(self.settings.columns).fit(X), rows, X)
        return self.task.with_constants(table, self.numbers, rows)


class RowEnergy:
    """One energy of all classes of a mixed table, whose chains start from the rows of a class."""

    teacher = None
    densities: dict = {}
    varying: dict = {}

    def __init__(self, task, settings):
        self.task, self.settings = task, settings
        self.wanted = {label: n for label, n in task.wanted.items() if n}
        self.space = RowSpace.fit(task.X, settings.columns)
        self.rows, self.key = self.space.rows(task.X), key_from(settings.random_state)
        self.classes, self.codes = np.unique(task.y, return_inverse=True)
        self.learned = learned_places(host_rng(self.key, Stream.START_ROWS), self.codes, self.classes, self.wanted)
        density = settings.density_or_default()
        options = generator_options(density, self.space, also=("sampler",))
        self.chain = _mixed_chain(settings.sampler or density.sampler, options.get("noise") or NOISE)
        self.row_model = self._fitted(density, options)
        self.limits = self._limits()
        self.level_rngs: dict = {}
        for label in self.wanted:
            rows = self._rows_of(label)
            alike = same_rows(rows).max() == 0
            _warn_of_few(label, len(rows), "shaped by the other classes" if alike else None)

    def _fitted(self, density, options):
        report = ProgressReport(self.settings.owner, "energy", density.verbose)
        key = self.key if density.random_state is None else key_from(density.random_state)
        taught = self.rows[self.learned], self.codes[self.learned]
        model = fit_generator(key, self.space, *taught, callback=report, **options)
        report.close(f"energy: weights of steps {[fit['best_step'] for fit in model.history]}")
        return model

    def _limits(self):
        """Least and greatest normal scores of generated numbers, or None for no limits."""
        limits = self.settings.limits(self.space.layout.n_numbers)
        if limits is not None:
            limits = tuple(self.space.scores.transform(limit[None])[0] for limit in limits)
        elif self.settings.bounds is not None:
            limits = self.space.range_of(self.rows)
        if limits is not None and self.settings.last_is_free:
            limits[0][-1], limits[1][-1] = -np.inf, np.inf
        return limits

    @functools.cached_property
    def seed(self):
        """Of the choice of rows for a learner."""
        return self.settings.seed()

    def _number_of(self, label):
        return int(np.searchsorted(self.classes, label))

    def _rows_of(self, label):
        return self.rows[self.codes == self._number_of(label)]

    def samplers(self, label):
        """None alone: all rows come by the chains of the energy."""
        return [None]

    def drawn(self, label, n, rng=None, at=0, sampler=None):
        """Flat rows, and the indices of their parents; `at` tells the draws of a class apart."""
        k = self._number_of(label)
        key = jax.random.fold_in(jax.random.fold_in(self.key, k), at)
        made, starts = self.row_model.sample(key, n, k, self._rows_of(label), self.limits, **self.chain)
        return made, np.flatnonzero(self.codes == k)[starts]

    def keeper(self, label):
        """A function of flat rows and n that gives the indices of the n rows to keep; None keeps all."""
        k, model, where = self._number_of(label), self.row_model, self.settings.where
        if where == "clear":
            return lambda made, n: greatest(log_odds(model.ratios(made).astype(np.float64), k), n)
        if where == "core":
            return lambda made, n: greatest(model.energies(made)[:, k], n)
        if where == "boundary":
            return lambda made, n: greatest(-np.abs(self._odds(self.space.table(made, self.task.X), k)), n)
        if where == "diverse":
            inputs, rows = Method(self.space.layout, "inputs"), self._rows_of(label)
            return lambda made, n: most_diverse(map_rows(inputs, made), map_rows(inputs, rows), n)
        return None

    @functools.cached_property
    def _odds(self):
        taught = take_rows(self.task.X, self.learned), self.task.y[self.learned]
        seed = seed_from(self.settings.random_state)
        return _fitted_odds(self.settings, *taught, seed, self.settings.columns)

    def table(self, rows, label=None):
        """Flat rows as a table: of a class without identifiers, or of all with those that were asked for."""
        if label is not None:
            rng = self.level_rngs.setdefault(label, host_rng(self.key, Stream.POOLED_LEVELS))
            return self.space.table(rows, self.task.X, rng)
        if self.settings.ids == "new":
            self.task.set_keys(self.space.encoder)
        return self.space.table(rows, self.task.X, host_rng(self.key, Stream.POOLED_LEVELS), self.settings.ids)


def _mixed_chain(sampler, noise):
    """Step, length and temperature of the chains of mixed rows, from a given Langevin sampler."""
    if sampler is None:
        return {}
    if type(sampler) is not Langevin:
        raise ValueError(
            "Expected sampler to be None or Langevin for a table with missing values or columns that are not numbers, "
            f"got {type(sampler).__name__}."
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
    return {"step": min(step, LARGEST_STEP), "n_steps": sampler.chain_length, "temperature": sampler.temperature}


class TeacherSteps:
    """Short steps of a teacher's energy from real rows, or redrawn cells where it has none; rows are tables."""

    densities: dict = {}
    varying: dict = {}
    row_model = None

    def __init__(self, task, settings):
        self.task, self.seed, self.classes = task, settings.seed(), np.unique(task.y)
        possible = None if settings.mixed else possible_cells(task, settings, as_numbers(task.X))
        self.teacher = settings.fitted_teacher(task, self.seed)
        self.new = NewRows(task.X, self.teacher, possible, settings.columns)
        self.within = _within_limits(task.X, settings) if self.new.energy is None else None
        for label, n in task.wanted.items():
            if n:
                self._warn_of_few(label)

    def _warn_of_few(self, label):
        at = np.flatnonzero(self.task.y == label)
        alike = len(at) == 1 or (self.new.energy is not None and not np.ptp(self.new.numbers[at], axis=0).any())
        _warn_of_few(label, len(at), "steps of the teacher's energy" if alike else None)

    @functools.cached_property
    def _asked(self):
        """Places of some rows, and the teacher's probabilities of the classes there."""
        places = some_places(np.random.default_rng([self.seed, 4]), len(self.task.y), MAX_ASKED)
        return places, probabilities(self.teacher, self.classes, take_rows(self.task.X, places))

    def drawn(self, label, n, rng=None, at=0, sampler=None):
        """A table of n candidates, and the rows that they start from.

        Half of them start from the rows of the class in turn, half from rows of any class in proportion to the
        probability of the class: they lie where the class may be and has few rows. Few rows of a class are not enough
        for that.
        """
        of_class, k = np.flatnonzero(self.task.y == label), int(np.searchsorted(self.classes, label))
        n_of_class = n if len(of_class) < FEW_OF_CLASS else n - n // 2
        rounds = [rng.permutation(of_class) for _ in range(-(-n_of_class // len(of_class)))]
        parents = np.concatenate(rounds)[:n_of_class]
        if n_of_class < n:
            places, proba = self._asked
            others = places[spread_choice(rng, n - n_of_class, proba[:, k], len(places))]
            parents = np.concatenate([parents, others])
        made = self.new.drawn(rng, parents, np.full(n, k), HARD_STEPS, of_class)
        return made if self.within is None else self.within(rng, made), parents

    def table(self, rows, label=None):
        """The rows: they are tables."""
        return rows


def _within_limits(X, settings):
    """A function that reflects the numbers of a mixed table at given bounds; None where there are none."""
    if not settings.gives_limits:
        return None  # cells are those of real rows
    encoder = TableEncoder(settings.columns).fit(X)
    limits = settings.limits(sum(v.number >= 0 for v in encoder.variables))

    def within(rng, table):
        numbers, codes = encoder.encode(table)
        return encoder.decode((reflected(numbers, *limits), codes), X, rng)

    return within
