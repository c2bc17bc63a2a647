"""ScoreDensity: a density estimator whose score field is learned by score matching.

Algorithm 1 of the paper (field, anchor, integral) behind scikit-learn's density interface.
"""

import dataclasses
import numbers

import jax
import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from scorefield._jax.batching import map_rows, standardized
from scorefield._jax.errors import warn_caller
from scorefield._jax.pytrees import Method
from scorefield._jax.random import Stream, host_rng, key_from, seed_from
from scorefield._jax.storage import from_plain, stored_by_public_name, to_plain
from scorefield.data.checks import check_ids
from scorefield.data.dask import partition_wise
from scorefield.data.scaling import raw_rows
from scorefield.data.spaces import refuse_mixed, what_is_mixed
from scorefield.diagnose.diagnosed import DiagnosedDensity
from scorefield.estimators._sklearn import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
    fit_task,
    with_callbacks,
)
from scorefield.estimators.table_input import changed_settings, read, read_weighted
from scorefield.fields.flow import FlowLogDensity
from scorefield.fields.gaussian import Gaussian
from scorefield.fields.mixtures import GaussianMixture
from scorefield.fields.moments import weighted_mean
from scorefield.fields.networks import ACTIVATIONS
from scorefield.inference.anchors import counting_anchor, gaussian_anchor, importance_constant, importance_proposal
from scorefield.inference.functions import OfRawRows, Plus
from scorefield.inference.line_integrals import KERNELS, N_NODES, RULES, line_integral, path_gap, smooth
from scorefield.models.density_fitting import FitsField, base_degrees
from scorefield.models.fitting import fit_generator
from scorefield.models.progress import ProgressReport
from scorefield.models.requested_numbers import NumberEnergy, requested_numbers
from scorefield.models.requests import (
    ModelRequests,
    check_constraints,
    check_n_rows,
    joined_constraints,
    key_seed,
    request_for,
    rows_on_request,
)
from scorefield.models.shared_training import fit_together
from scorefield.sampling.acceptance import warn_of_low_acceptance
from scorefield.sampling.samplers import MALA, Langevin, ReverseDiffusion, Samples

MODELS = ("gaussian", "mixture", "kernel", "energy", "mlp", "diffusion")
MODELS_OF_MIXED = ("auto", "energy")
MIXED_SETTINGS = ("model", "hidden", "noise", "max_steps", "columns", "random_state", "verbose")
LARGE_ERROR = 0.2  # nats of a normaliser that are worth a warning
N_LANGEVIN = 4096  # samples that the Langevin anchor counts


@stored_by_public_name
class ScoreDensity(FitsField, DiagnosedDensity, CallbackSupportMixin, DensityMixin, BaseEstimator):
    """Density estimation by score matching.

    Parameters
    ----------
    model : {"auto", "gaussian", "mixture", "kernel", "energy", "mlp", "diffusion"}, default="auto"
        The score field. "mixture" is one of Gaussians by maximum likelihood, not by score matching. "auto" fits the
        candidates that the number of rows allows and keeps the one with the greatest log density of held-out rows; in
        many columns, where that takes too long, the least denoising loss, which cannot see the masses of modes that lie
        apart. See ``candidates_``.
    objective : {"auto", "exact", "sliced", "denoising"}, default="auto"
        Score-matching loss. "auto" is denoising with a contrast against the Gaussian base for "energy", denoising
        over all levels for "diffusion", exact matching of slightly noisy rows for "mlp", a closed form for
        "gaussian" and "kernel", and the likelihood for "mixture".
    hidden : tuple of int, default=(128, 128)
        Widths of the hidden layers.
    activation : {"silu", "relu", "softplus", "tanh", "gelu"}, default="silu"
        "relu" follows the paper and is for "mlp" and "diffusion" only.
    noise : "auto" or float, default="auto"
        Standard deviation of the noise added to (standardised) rows. "auto" is a quarter of Scott's bandwidth, next to
        nothing for "gaussian" and "mixture", and zero where "exact" or "sliced" is asked for by name.
    standardize : bool, default=True
        Work on z-scores whose correlations are removed, so that noise and steps respect narrow directions. The paper's
        simulations use False.
    learning_rate : float, default=0.003
        Adam's step size at the start; it falls to zero over ``max_steps``.
    batch_size : int, default=128
        Rows per step.
    max_steps : "auto" or int, default="auto"
        Most training steps.
    validation_fraction : float, default=0.2
        Share of rows held out to stop early and to choose a model.
    early_stopping : bool, default=True
        Keep the weights with the least held-out loss.
    anchor : {"auto", "gaussian", "counting", "langevin", "importance"}, default="auto"
        How log densities get their constant. "auto" is exact for "gaussian" and "mixture", the probability flow
        for "diffusion" and importance sampling for the others. The paper's are the density of a Gaussian at the mean,
        and the share of rows ("counting") or of Langevin samples ("langevin") near the mean.
    integrator : {"gauss-legendre", "simpson", "trapezoid", "monte-carlo", "taylor"}, default="gauss-legendre"
        Line-integral rule of fields without a potential ("mlp", or "diffusion" with an anchor). "monte-carlo" draws
        nodes of its own for each row.
    smoothing : None or float, default=None
        Radius over which scores are averaged before they are integrated or sampled.
    sampler : None or sampler, default=None
        Default sampler of :meth:`sample`: exact for "gaussian" and "mixture", MALA for "energy" and "kernel", reverse
        diffusion for "diffusion", Langevin for "mlp".
    tails : {"auto", "gaussian"}, default="auto"
        Base of the model "energy". "auto" takes a Student's t where columns have heavy tails and it gives held-out rows
        a greater density than a Gaussian; far out a model is as its base.
    n_projections : int, default=1
        Random directions per row of objective "sliced".
    n_nodes : None or int, default=None
        Nodes of the line integral; None is 32, or 33 for "simpson".
    anchor_radius : None or float, default=None
        Radius, in standardised units, of the ball that the anchors "counting" and "langevin" count in; None takes the
        square root of n nearest points.
    smoothing_kernel : {"uniform", "epanechnikov"}, default="uniform"
        Equal weights within the radius of ``smoothing``, or weights that fall to zero towards it.
    columns : None or dict, default=None
        Kinds of columns by name, for those that :func:`describe_columns` takes for something else.
    constraints : None, str or list, default=None
        Relations between columns that :meth:`sample` keeps, such as ``"start <= end"`` or ``"total == a + b"``; see
        :class:`ScoreClassifier`.
    random_state : None, int or generator, default=None
        Seeds all random numbers; the same integer gives the same results, and None others in each run.
    verbose : int, default=0
        1 shows a bar with the loss and the held-out loss.

    Attributes
    ----------
    model_ : dict
        The fitted field as plain arrays.
    model_name_ : str
        The model that was used.
    candidates_ : list of dict
        What "auto" tried: name, held-out loss (minus the mean log density, or the denoising loss) and whether it was
        chosen.
    history_ : dict
        Loss, held-out loss and steps per chunk of training; empty for models solved in closed form.
    noise_ : float
        Deviation of the noise of the (standardised) rows whose field it is; only where all columns are numbers.
    path_gap_ : float
        Mean difference in nats between two integration paths to the rows; zero for fields with a potential.
    anchor_size_ : float
        Effective number of points behind the anchor.
    anchor_error_ : float
        Standard error of the anchor's constant in nats: all log densities share it.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    ``score_samples`` and ``grad_log_density`` also take dask arrays and dataframes; they then return dask arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import ScoreDensity
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> density = ScoreDensity(model="gaussian", random_state=0).fit(X)
    >>> density.score_samples(X[:3]).shape, density.sample(5).shape, density.grad_log_density(X[:3]).shape
    ((3,), (5, 2), (3, 2))
    """

    _parameter_constraints = {
        "model": [StrOptions({"auto", *MODELS})],
        "objective": [StrOptions({"auto", "exact", "sliced", "denoising"})],
        "hidden": ["array-like"],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "noise": [StrOptions({"auto"}), Interval(numbers.Real, 0, None, closed="left")],
        "standardize": ["boolean"],
        "learning_rate": [Interval(numbers.Real, 0, None, closed="neither")],
        "batch_size": [Interval(numbers.Integral, 1, None, closed="left")],
        "max_steps": [StrOptions({"auto"}), Interval(numbers.Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(numbers.Real, 0, 1, closed="neither")],
        "early_stopping": ["boolean"],
        "anchor": [StrOptions({"auto", "gaussian", "counting", "langevin", "importance"})],
        "integrator": [StrOptions(set(RULES))],
        "smoothing": [None, Interval(numbers.Real, 0, None, closed="neither")],
        "sampler": [None, HasMethods(["sample"])],
        "tails": [StrOptions({"auto", "gaussian"})],
        "n_projections": [Interval(numbers.Integral, 1, None, closed="left")],
        "n_nodes": [None, Interval(numbers.Integral, 1, None, closed="left")],
        "anchor_radius": [None, Interval(numbers.Real, 0, None, closed="neither")],
        "smoothing_kernel": [StrOptions(set(KERNELS))],
        "columns": [None, dict],
        "constraints": [None, str, list, tuple],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        model="auto",
        *,
        objective="auto",
        hidden=(128, 128),
        activation="silu",
        noise="auto",
        standardize=True,
        learning_rate=3e-3,
        batch_size=128,
        max_steps="auto",
        validation_fraction=0.2,
        early_stopping=True,
        anchor="auto",
        integrator="gauss-legendre",
        smoothing=None,
        sampler=None,
        random_state=None,
        verbose=0,
        tails="auto",
        n_projections=1,
        n_nodes=None,
        anchor_radius=None,
        smoothing_kernel="uniform",
        columns=None,
        constraints=None,
    ):
        self.model = model
        self.objective = objective
        self.hidden = hidden
        self.activation = activation
        self.noise = noise
        self.standardize = standardize
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_steps = max_steps
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.anchor = anchor
        self.integrator = integrator
        self.smoothing = smoothing
        self.sampler = sampler
        self.random_state = random_state
        self.verbose = verbose
        self.tails = tails
        self.n_projections = n_projections
        self.n_nodes = n_nodes
        self.anchor_radius = anchor_radius
        self.smoothing_kernel = smoothing_kernel
        self.columns = columns
        self.constraints = constraints

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        takes_mixed = self.model in ("auto", "energy")
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = takes_mixed
        return tags

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Learn the field of the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d)
            An array, a pandas or polars DataFrame or a pyarrow table. One with missing values, or with columns that
            are not numbers, is learned by one energy over numbers and categories; ``model`` is then "auto" or "energy".
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), default=None
            Weights of rows: one of 2 counts as two rows, one of 0 leaves the row out. Moments are weighted for
            "gaussian", "mixture" and "kernel", and the loss of a network. Weights count rows, so their size matters
            for what depends on the number of rows, such as the noise; those with a mean of over 10 act by their ratios
            alone.

        Returns
        -------
        self : ScoreDensity
        """
        X, weights = self._check_new(X, sample_weight)
        with fit_task(self, X=X):
            if self._mixed:
                self._fit_mixed(X, weights)
            else:
                fit_together([self], [(X, weights)])
            self._normalize()
        return self

    @property
    def trains_with_others(self):
        """True for a density without scikit-learn callbacks, which expect a fit of their own."""
        return type(self) is ScoreDensity and not getattr(self, "_skl_callbacks", None)

    def _check_new(self, X, sample_weight=None):
        rows, _, self.space_, weights = read_weighted(self, X, None, sample_weight, ensure_min_samples=2)
        check_constraints(self.space_, X, self.constraints)
        return rows, weights

    def _read(self, X):
        check_is_fitted(self)
        return read(self, X, self.space_)

    @property
    def _mixed(self):
        return self.space_.layout is not None

    def _fit_mixed(self, rows, weights):
        """The energy of mixed rows."""
        options = generator_options(self, self.space_, also=("constraints",))
        key, report = key_from(self.random_state), ProgressReport(self, "energy", self.verbose)
        labels = np.zeros(len(rows), int)
        model = fit_generator(key, self.space_, rows, labels, weights=weights, callback=report, **options)
        report.close(f"energy: weights of steps {[fit['best_step'] for fit in model.history]}")
        self.row_model_, self.model_name_ = model, "energy"
        self.history_ = model.history[0]
        self.candidates_ = [{"model": "energy", "held_out_loss": None, "chosen": True}]
        self.path_gap_ = 0.0
        vars(self).pop("anchor_", None)

    def _row_model(self):
        return self.row_model_

    def safe_step(self, wanted):
        """A Langevin step that is stable on this field: at most the data's variance along its narrowest direction."""
        return min(wanted, self.least_variance_) or wanted

    def _standardized(self, X):
        return standardized(X, *self._units())

    def _units(self):
        return self.mean_, self.scale_, self.mix_

    def _log_volume(self):
        """Log of the volume that standardising multiplies by."""
        mixed = 0.0 if self.mix_ is None else np.linalg.slogdet(self.mix_)[1]
        return mixed - np.log(self.scale_).sum()

    def _set_anchor(self, key, field, table):
        """Prepare the constant of the log density, and measure how far it depends on the path of integration."""
        for name in ("anchor_", "proposal_"):
            vars(self).pop(name, None)
        rows, weights = table
        self.origin_ = rows.mean(axis=0) if weights is None else weighted_mean(rows, weights).astype(rows.dtype)
        self.path_gap_ = 0.0
        if not self._has_potential(field):
            near = rows[:: max(1, len(rows) // 64)]
            self.path_gap_ = float(path_gap(self._smoothed(field), self.origin_, near).mean())
        exact = self.model_name_ in ("gaussian", "mixture", "diffusion")
        if exact and self.anchor == "auto" and self.smoothing is None:
            self.anchor_ = [0.0, float(len(rows)), 0.0]
            return
        # The field is that of rows with noise, so the anchor is taken on such rows; without noise it is the paper's.
        rows = rows + self._noise(table) * host_rng(key, Stream.ANCHOR_NOISE).normal(size=rows.shape)
        if self.anchor == "gaussian":
            self.anchor_ = [float(value) for value in gaussian_anchor(self._unnormalised(field), rows, weights=weights)]
        elif self.anchor in ("counting", "langevin"):
            samples = self._langevin_rows(key, field) if self.anchor == "langevin" else None
            anchor = counting_anchor(
                self._unnormalised(field), rows, radius=self.anchor_radius, samples=samples, weights=weights
            )
            self.anchor_ = [float(value) for value in anchor]
        else:
            self.proposal_ = to_plain(importance_proposal(rows, degrees=base_degrees(field)))
            self.anchor_seed_ = np.asarray(jax.random.key_data(key))

    def _langevin_rows(self, key, field):
        """Ends of Langevin chains on the (smoothed) field, in standardised units."""
        chain = Langevin(self.safe_step(0.05), 200, 0.995)
        return chain.sample(key, self._smoothed(field), N_LANGEVIN, self.start_rows_).rows

    def _normalize(self):
        """The anchor's constant, effective size and error. Importance sampling waits for the first use of them."""
        if not hasattr(self, "anchor_") and self._mixed:
            constant, error = self.row_model_.log_constants[0], self.row_model_.anchors[0, 1]
            self.anchor_ = [float(constant), float(1 / max(error, 1e-3) ** 2), float(error)]
        if not hasattr(self, "anchor_"):
            field, key = from_plain(self.model_), jax.random.wrap_key_data(self.anchor_seed_)
            proposal, points = from_plain(self.proposal_), self._points(field)
            self.anchor_ = [
                float(v) for v in importance_constant(key, self._unnormalised(field), proposal, points=points)
            ]
            if self.anchor_[2] > LARGE_ERROR:
                warn_caller(
                    f"The normalising constant of the log density has a standard error of {self.anchor_[2]:.2f} nats, "
                    "which all log densities share; use model='diffusion', which needs no constant, or fewer columns."
                )
        return self.anchor_

    @property
    def log_constant_(self):
        """What is added to the integral of the field to give log densities of standardised rows."""
        return self._normalize()[0]

    @property
    def anchor_error_(self):
        """Standard error of the anchor's constant in nats; zero where log densities are exact."""
        return self._normalize()[2]

    @property
    def anchor_size_(self):
        """Effective number of points behind the anchor."""
        return self._normalize()[1]

    def _has_potential(self, field):
        flow = self.model_name_ == "diffusion" and self.anchor == "auto" and self.smoothing is None
        return field.conservative or flow

    def _smoothed(self, field):
        if self.smoothing is None:
            return field
        return smooth(jax.random.key(0), field, len(self.mean_), self.smoothing, kernel=self.smoothing_kernel)

    def _unnormalised(self, field):
        """Log density of standardised rows up to the anchor's constant, as a pytree function of one point."""
        if self._has_potential(field):
            return (
                FlowLogDensity(field) if self.model_name_ == "diffusion" else Method(self._smoothed(field), "potential")
            )
        return line_integral(
            self._smoothed(field), self.origin_, rule=self.integrator, n_nodes=self.n_nodes, key=jax.random.key(0)
        )  # the key serves the Monte-Carlo rule only

    def _points(self, field):
        """Points at which the log density of one row evaluates the field."""
        return self._smoothed(field).points * (1 if self._has_potential(field) else self.n_nodes or N_NODES)

    def _log_density(self):
        """The log density of standardised rows as a jax function of one point."""
        return Plus(self._unnormalised(from_plain(self.model_)), self.log_constant_)

    def log_density_function(self):
        """The fitted log density as a jax function of one point in the units of X."""
        check_is_fitted(self)
        return Plus(OfRawRows(self._log_density(), *self._units()), self._log_volume())

    @partition_wise(lambda self: ())
    def score_samples(self, X):
        """Log density of each row, shape (n,).

        For mixed tables it is that of the known cells, with respect to counting for categories, spikes and ordered
        levels, and to length for numbers. Constants are those of complete rows, so that rows with gaps compare with
        rows of the same gaps.
        """
        X = self._read(X)
        if self._mixed:
            model = self._row_model()
            return model.energies(X)[:, 0] + model.space.log_volume(X)[:, 0] + self.log_constant_
        values = map_rows(
            self._log_density(), X, points=self._points(from_plain(self.model_)), standardize=self._units()
        )
        return (values + self._log_volume()).astype(X.dtype)

    def score(self, X, y=None):
        """Total log density of the rows."""
        return float(np.sum(self.score_samples(X), dtype=np.float64))

    @partition_wise(lambda self: (self.n_features_in_,))
    def grad_log_density(self, X):
        """The score field at each row, shape (n, d).

        For mixed tables d counts the columns of numbers, and the field is that of their normal scores, 0 at gaps.
        """
        X = self._read(X)
        if self._mixed:
            return self._row_model().scores(X)[:, 0]
        field = self._smoothed(from_plain(self.model_))
        scores = map_rows(Method(field, "__call__"), X, points=field.points, standardize=self._units())
        scores = scores if self.mix_ is None else scores @ self.mix_  # which is symmetric
        return (scores / self.scale_).astype(X.dtype)

    def sample(self, n=1, random_state=None, *, given=None, constraints=None, ids="new"):
        """Draw n rows, as a table like the fitted one; ``random_state=None`` uses the estimator's own.

        ``given`` and ``constraints`` are conditions and relations that the rows meet, as in
        :meth:`ScoreClassifier.sample`. With ``ids="new"`` identifiers continue the pattern of their column, with
        "blank" they are missing.
        """
        check_is_fitted(self)
        check_ids(ids)
        state = self.random_state if random_state is None else random_state
        every = joined_constraints(self.constraints, constraints)
        if given or every:
            check_n_rows(n)
            return self._sample_on_request(n, seed_from(state), given, every, ids)
        if self._mixed:
            return self._row_model().generated(seed_from(state), n, 0, ids)
        return self.space_.table(self.draw(n, state).rows)

    def _sample_on_request(self, n, seed, given, constraints, ids):
        if self._mixed:
            return ModelRequests(self._row_model()).sample(seed, n, given, constraints, 0, ids)[0]
        request, energy = request_for(self.space_, [self.known_rows()], given, constraints), self.number_energy()

        def plain(key, m):
            return self.space_.table(self.draw(m, key_seed(key)).rows), None

        def guided(key, m):
            return self.space_.table(requested_numbers(key, [energy], [0.0], request, m)[0]), None

        return rows_on_request(key_from(seed), n, request, plain, None if energy is None else guided)[0]

    def number_energy(self):
        """The energy of columns of numbers that rows on request follow; None for a field without a potential."""
        field = from_plain(self.model_)
        if not field.conservative or self.smoothing is not None or self.model_name_ == "diffusion":
            return None
        potential = OfRawRows(Method(field, "potential"), np.float32(0), np.float32(1), self.mix_)
        rows = self.start_rows_ if self.mix_ is None else self.start_rows_ @ self.unmix_
        constant = self.log_constant_ + self._log_volume() + np.log(self.scale_).sum()
        return NumberEnergy(potential, self.mean_, self.scale_, rows, field.points, constant)

    def draw(self, n, random_state=None, *, sampler=None, X_start=None):
        """Rows in the units of X with their diagnostics (:class:`scorefield.sampling.Samples`).

        Chains start from the rows of ``X_start``, or from rows that the density was fitted to.
        """
        key, field = key_from(random_state), from_plain(self.model_)
        sampler = sampler or self._usual_sampler(field)
        if sampler is None:
            if n < 1:
                raise ValueError(f"Expected n >= 1 rows to generate, got {n}.")
            exact = field.exact_rows(host_rng(key, Stream.EXACT_DRAWS), n)
            return self._in_units_of_X(Samples(np.asarray(exact, np.float32), np.full(n, -1), 0, None, None))
        starts = self.start_rows_ if X_start is None else self._standardized(X_start)
        drawn = sampler.sample(key, self._smoothed(field), n, starts)
        warn_of_low_acceptance(drawn, sampler)
        return self._in_units_of_X(drawn)

    def _usual_sampler(self, field):
        """The sampler of `sample`; None where rows are drawn from Gaussians themselves."""
        if self.sampler is not None:
            return self.sampler
        if self.smoothing is None and isinstance(field, Gaussian | GaussianMixture):
            return None
        if self.smoothing is None and self.model_name_ == "diffusion":
            return ReverseDiffusion()
        chain = MALA if self._has_potential(field) and field.conservative else Langevin
        return chain(self.safe_step(0.05), 200, 0.995)

    def known_rows(self):
        """Up to 1,024 rows that a model of numbers was fitted to, in the units of X."""
        rows = self.start_rows_ if self.mix_ is None else self.start_rows_ @ self.unmix_
        return raw_rows(rows, self.mean_, self.scale_)

    def _in_units_of_X(self, samples):
        rows = samples.rows if self.mix_ is None else samples.rows @ self.unmix_
        return dataclasses.replace(samples, rows=rows * self.scale_ + self.mean_)


class UsesDensity:
    """Mixin of estimators with a parameter `density`: they take the tables that it takes."""

    def __sklearn_tags__(self):
        tags, own = super().__sklearn_tags__(), get_tags(self._density())
        for name in ("allow_nan", "categorical", "string"):
            setattr(tags.input_tags, name, getattr(own.input_tags, name))
        return tags

    def _density(self):
        return ScoreDensity() if self.density is None else self.density


def refuse_model_of_mixed(space, density):
    """Raise an error that names what a density's model cannot take."""
    refuse_mixed(space, "model 'auto' or 'energy'", repr(density.model))


def generator_options(density, space, *, also=()):
    """What a density says of the network of mixed rows; a setting that such a network does not have is refused.

    The settings named in `also` act elsewhere.
    """
    if density.model not in MODELS_OF_MIXED:
        refuse_model_of_mixed(space, density)
    for name, value in changed_settings(density, but=(*MIXED_SETTINGS, *also)).items():
        raise ValueError(
            f"Expected no {name} for a table with {what_is_mixed(space)}, whose model has no such setting, got "
            f"{name}={value!r}; leave it out, or fill missing values and encode text as numbers."
        )
    chosen = {name: getattr(density, name) for name in ("noise", "max_steps")}
    return {"hidden": tuple(density.hidden), **{name: value for name, value in chosen.items() if value != "auto"}}


def fisher_divergence(density, score, X):
    """Fisher divergence of a fitted density from a known truth: half the mean squared difference of their fields.

    Parameters
    ----------
    density : fitted estimator with ``grad_log_density``
    score : array of shape (n, d)
        The true score at each row.
    X : array of shape (n, d)
        Rows of the truth.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import ScoreDensity, fisher_divergence
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> round(fisher_divergence(ScoreDensity("gaussian").fit(X), -X, X), 1)
    0.0
    """
    found, truth = np.asarray(density.grad_log_density(X), np.float64), np.asarray(score, np.float64)
    if found.shape != truth.shape:
        raise ValueError(f"Expected the true score at each row, shape {found.shape}, got shape {truth.shape}.")
    return float(0.5 * np.mean(np.sum((found - truth) ** 2, axis=1)))
