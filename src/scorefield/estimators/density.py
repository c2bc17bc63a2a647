"""ScoreDensity: a density estimator whose score field is learned by score matching.

Algorithm 1 of the paper (field, anchor, integral) behind scikit-learn's density interface.
"""

import numbers

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from scorefield._jax.random import key_from, seed_from
from scorefield._jax.storage import stored_by_public_name
from scorefield.data.checks import check_ids
from scorefield.data.dask import is_lazy, partition_wise
from scorefield.diagnose.diagnosed import diagnose_density
from scorefield.estimators._sklearn import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
    fit_task,
    sklearn_validate_data,
    with_callbacks,
)
from scorefield.estimators.table_input import read, read_weighted
from scorefield.fields.networks import ACTIVATIONS
from scorefield.inference.line_integrals import KERNELS, RULES
from scorefield.models.density_fitting import FieldSettings, FieldTraining
from scorefield.models.field_density import Inference
from scorefield.models.fitting import fit_generator
from scorefield.models.progress import ProgressReport
from scorefield.models.requests import check_constraints, check_n_rows, joined_constraints
from scorefield.models.row_density import RowDensity
from scorefield.models.settings import MODELS_OF_MIXED, generator_options
from scorefield.models.shared_training import fit_together

MODELS = ("gaussian", "mixture", "kernel", "energy", "mlp", "diffusion")


@stored_by_public_name
class ScoreDensity(CallbackSupportMixin, DensityMixin, BaseEstimator):
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
        a greater density than a Gaussian; far from the data the model has the tails of its base.
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
    model_ : FieldDensity or RowDensity
        What was learned: a field of a table of numbers, or the energy of a mixed table.
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
        takes_mixed = self.model in MODELS_OF_MIXED
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
        space, rows, weights = self._check_new(X, sample_weight)
        with fit_task(self, X=rows):
            self.model_ = self._fitted(space, rows, weights)
            self.model_.normalized()
        return self

    def _fitted(self, space, rows, weights):
        """A `FieldDensity` of numbers, or a `RowDensity` of mixed rows."""
        if not space.is_mixed:
            return fit_together([FieldTraining(self._settings(), space)], [(rows, weights)])[0]
        options = generator_options(self, space, also=("constraints",))
        key, report = key_from(self.random_state), ProgressReport(self, "energy", self.verbose)
        labels = np.zeros(len(rows), int)
        model = fit_generator(key, space, rows, labels, weights=weights, callback=report, **options)
        report.close(f"energy: weights of steps {[fit['best_step'] for fit in model.history]}")
        return RowDensity(model)

    def _settings(self):
        inference = Inference(*(getattr(self, name) for name in Inference._fields))
        given = {name: getattr(self, name) for name in FieldSettings._fields if name not in ("inference", "owner")}
        return FieldSettings(**given, inference=inference, owner=self)

    @property
    def trains_with_others(self):
        """True for a density without scikit-learn callbacks, which expect a fit of their own."""
        return type(self) is ScoreDensity and not getattr(self, "_skl_callbacks", None)

    def training(self, X, sample_weight=None):
        """A fit that can train beside others, and its rows with their weights; `model_` is what it gives."""
        space, rows, weights = self._check_new(X, sample_weight)
        return FieldTraining(self._settings(), space), (rows, weights)

    def _check_new(self, X, sample_weight=None):
        rows, _, space, weights = read_weighted(self, X, None, sample_weight, ensure_min_samples=2)
        check_constraints(space, X, self.constraints)
        return space, rows, weights

    def _read(self, X):
        check_is_fitted(self)
        return read(self, X, self.model_.space)

    @property
    def model_name_(self):
        """The model that was used."""
        return self.model_.name

    @property
    def candidates_(self):
        """What "auto" tried."""
        return self.model_.candidates

    @property
    def history_(self):
        """Loss, held-out loss and steps per chunk of training."""
        return self.model_.history

    @property
    def noise_(self):
        """Deviation of the noise of the standardised rows of numbers."""
        return self.model_.noise

    @property
    def path_gap_(self):
        """Mean difference in nats between two integration paths to the rows."""
        return self.model_.path_gap

    @property
    def log_constant_(self):
        """What is added to the integral of the field to give log densities of standardised rows."""
        return self.model_.normalized()[0]

    @property
    def anchor_size_(self):
        """Effective number of points behind the anchor."""
        return self.model_.normalized()[1]

    @property
    def anchor_error_(self):
        """Standard error of the anchor's constant in nats; zero where log densities are exact."""
        return self.model_.normalized()[2]

    def safe_step(self, wanted):
        """A Langevin step that is stable on the field of a table of numbers."""
        return self.model_.safe_step(wanted)

    def log_density_function(self):
        """The fitted log density of numbers as a jax function of one point in the units of X."""
        check_is_fitted(self)
        return self.model_.log_density_function()

    @partition_wise(lambda self: ())
    def score_samples(self, X):
        """Log density of each row, shape (n,).

        For mixed tables it is that of the known cells, with respect to counting for categories, spikes and ordered
        levels, and to length for numbers. Constants are those of complete rows, so that rows with missing values
        compare with rows that miss the same values.
        """
        rows = self._read(X)
        return self.model_.log_density(rows)

    def completed_scores(self, X, key, n_draws):
        """How usual each row is, shape (n,): of numbers its log density.

        In mixed tables it is that of the normal scores of rows completed by draws, up to a constant.
        """
        check_is_fitted(self)
        if not self.model_.space.is_mixed:
            return self.score_samples(X)
        if is_lazy(X):
            raise ValueError(
                "Expected a table in memory for mixed rows, got a dask collection; score its partitions one by one."
            )
        sklearn_validate_data(self, X, skip_check_array=True, reset=False)
        return self.model_.completed_scores(X, key, n_draws)

    def score(self, X, y=None):
        """Total log density of the rows."""
        return float(np.sum(self.score_samples(X), dtype=np.float64))

    @partition_wise(lambda self: (self.n_features_in_,))
    def grad_log_density(self, X):
        """The score field at each row, shape (n, d).

        For mixed tables d counts the columns of numbers, and the field is that of their normal scores, 0 at missing
        values.
        """
        rows = self._read(X)
        return self.model_.scores(rows)

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
            return self.model_.requested(seed_from(state), n, given, every, ids, self.sampler)
        return self.model_.generated(state, n, ids, self.sampler)

    def draw(self, n, random_state=None, *, sampler=None, X_start=None):
        """Rows in the units of X with their diagnostics (:class:`scorefield.sampling.Samples`).

        Chains start from the rows of ``X_start``, or from rows that the density was fitted to.
        """
        return self.model_.draw(n, random_state, sampler=sampler or self.sampler, X_start=X_start)

    def number_energy(self):
        """The energy of columns of numbers that rows on request follow; None for a field without a potential."""
        return self.model_.number_energy()

    def known_rows(self):
        """Up to 1,024 rows that a model of numbers was fitted to, in the units of X."""
        return self.model_.known_rows()

    def diagnose(self, X_held_out=None, *, random_state=None):
        """Judge the fitted density: its field, its constant and its chains.

        Parameters
        ----------
        X_held_out : None or table like the fitted one
            Rows that the density was not fitted to. None takes up to 1,024 training rows, which is optimistic.
        random_state : None, int or generator
            None uses the estimator's own.

        Returns
        -------
        Diagnosis
            Prints as a table. Values are attributes: ``score_gain`` (gain in the denoising score-matching loss over no
            field, in units of a Gaussian's gain), ``stein_p_value`` (kernel Stein test; with few rows it finds gross
            errors only), ``cell_gain`` (mixed tables: nats by which cells are better predicted by the other cells
            of their rows than by independent columns), ``path_gap``, ``anchor_error``, ``acceptance``, ``r_hat``,
            ``effective_draws`` and ``diverged``.
        """
        check_is_fitted(self)
        key = key_from(self.random_state if random_state is None else random_state)
        rows = None if X_held_out is None else self._read(X_held_out)
        return diagnose_density(key, self.model_, rows, self.sampler)


def take_tables_like(tags, density):
    """Tags of an estimator that takes the tables that its density, or ScoreDensity, takes."""
    of_density = get_tags(ScoreDensity() if density is None else density)
    for name in ("allow_nan", "categorical", "string"):
        setattr(tags.input_tags, name, getattr(of_density.input_tags, name))
    return tags


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
    >>> from scorefield import ScoreDensity
    >>> from scorefield.paper import fisher_divergence
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> round(fisher_divergence(ScoreDensity("gaussian").fit(X), -X, X), 1)
    0.0
    """
    field, truth = np.asarray(density.grad_log_density(X), np.float64), np.asarray(score, np.float64)
    if field.shape != truth.shape:
        raise ValueError(f"Expected the true score at each row, shape {field.shape}, got shape {truth.shape}.")
    return float(0.5 * np.mean(np.sum((field - truth) ** 2, axis=1)))
