"""How `ScoreDensity` fits a table of numbers: the candidates, how each is solved or trained, the choice among them."""

from typing import Any, NamedTuple

import numpy as np

from scorefield._jax.batching import as_rows, map_rows, standardized
from scorefield._jax.errors import warn_caller
from scorefield._jax.pytrees import Method
from scorefield._jax.random import Stream, host_rng, key_from
from scorefield._jax.storage import to_plain
from scorefield.data.row_weights import uneven
from scorefield.data.scaling import column_units, covariance_of_columns, decorrelation
from scorefield.data.splits import same_rows, split_distinct, stratified_folds
from scorefield.fields.diffusion import DiffusionField, init_diffusion_field
from scorefield.fields.flow import FlowLogDensity
from scorefield.fields.gaussian import Gaussian, fit_gaussian
from scorefield.fields.mixtures import GaussianMixture
from scorefield.fields.moments import effective_size, weighted_mean
from scorefield.fields.neural import init_energy_field, init_vector_field
from scorefield.fields.random_features import fit_kernel
from scorefield.fields.student import base_degrees, fit_base
from scorefield.inference.anchors import importance_constant, importance_proposal
from scorefield.models.field_density import FieldDensity, Inference
from scorefield.models.mixture_fitting import fit_mixture, most_parts
from scorefield.models.progress import ProgressReport
from scorefield.models.shared_training import Prepared
from scorefield.training.losses import (
    ContrastiveDenoising,
    Denoising,
    Exact,
    MultilevelDenoising,
    NoisyRows,
    Sliced,
    Weighted,
    WeightedRow,
    default_noise,
    mean_loss,
)
from scorefield.training.roughness import roughness
from scorefield.training.together import Task

SOLVED = ("gaussian", "mixture", "kernel")  # without training of a network
AUTO_STEPS = {"energy": 3000, "mlp": 3000, "diffusion": 5000}
MAX_START_ROWS = 1024  # rows kept as starting points of chains
PATIENCE = 6  # chunks of 100 steps without a better held-out loss
TRACE = 1e-3  # noise that leaves a density as it is
SELECTION_FOLDS = 5  # for models that are solved; a network is compared on the rows that it was stopped by
MAX_SELECTION_ROWS = 2048  # held-out rows that models are compared on
SELECTION_POINTS, SELECTION_ERROR = 4096, 0.05  # draws for the normaliser of a candidate, and most nats it may be off
SELECTION_DRAWS = 8  # noise draws per held-out row, where the denoising loss decides
MAX_MIXED_COLUMNS = 32  # of a mixture among the candidates: EM takes seconds beyond


class FieldSettings(NamedTuple):
    """Parameters of `ScoreDensity` that its fit to a table of numbers depends on, and the estimator that reports."""

    model: str
    objective: str
    hidden: tuple
    activation: str
    noise: Any
    standardize: bool
    learning_rate: float
    batch_size: int
    max_steps: Any
    validation_fraction: float
    early_stopping: bool
    tails: str
    n_projections: int
    random_state: Any
    verbose: int
    inference: Inference
    owner: Any


class FieldTraining:
    """A fit to a table of numbers in two parts: networks to be trained, and what follows once they are.

    Between them the networks of several fits can train together, see `fit_together`.
    """

    def __init__(self, settings, space):
        self.settings, self.space = settings, space

    def prepared(self, X, weights=None):
        """Standardise the rows, split them, and set up the networks of the candidates: a `Prepared`."""
        chosen = self.settings
        key = key_from(chosen.random_state)
        self.mean, self.scale, self.mix, self.unmix = np.zeros(X.shape[1]), np.ones(X.shape[1]), None, None
        if chosen.standardize:
            self.mean, self.scale = column_units(X, weights)
            self.mix, self.unmix = decorrelation(as_rows(standardized(X, self.mean, self.scale)), weights)
        table = WeightedRow(as_rows(standardized(X, self.mean, self.scale, self.mix)), weights)
        names = self._candidates(*table.x.shape) if chosen.model == "auto" else (chosen.model,)
        noise = self._noise(table)
        split = split_distinct(host_rng(key, Stream.CANDIDATE_SPLIT), table.x, chosen.validation_fraction)
        kept, held = (_part(table, index) for index in split)
        if len(kept.x) < 2:
            kept = held = table
        tasks = {name: None if name in SOLVED else self._task(key, name, kept, held, noise) for name in names}
        return Prepared(key, table, noise, kept, held, tasks)

    def finished(self, prepared, trained):
        """The `FieldDensity` of the chosen candidate, with what prediction and sampling need."""
        key, table, rows, chosen = prepared.key, prepared.rows, prepared.rows.x, self.settings
        for name, fit in trained.items():
            report = prepared.tasks[name].options["callback"]
            if report:
                report.close(f"{name}: weights of step {fit.best_step}")
        field, name, candidates = self._choose(prepared, trained)
        noise = self._noise_of(field, prepared.noise)
        if name not in SOLVED and chosen.objective in ("exact", "sliced") and not prepared.noise:
            _warn_of_a_rough_field(key, field, rows)
        rng = host_rng(key, Stream.START_ROWS)
        if table.weight is None:
            order = rng.permutation(len(rows))[:MAX_START_ROWS]
        else:
            order = rng.choice(len(rows), min(len(rows), MAX_START_ROWS), p=table.weight / table.weight.sum())
        density = FieldDensity(
            self.space, chosen.inference, mean=self.mean, scale=self.scale, mix=self.mix, unmix=self.unmix,
            plain_field=to_plain(field), name=name, candidates=candidates, history=history_of(trained.get(name)),
            noise=noise, start_rows=rows[np.sort(order)], least_variance=_least_variance(field, table, noise),
        )  # fmt: skip
        density.set_anchor(key, table, prepared.noise)
        return density

    def _candidates(self, n, d):
        """What "auto" tries at this number of rows, less the models that the objective or activation rules out."""
        objective, activation = self.settings.objective, self.settings.activation
        ruled_out = {
            "gaussian": objective == "sliced",
            "mixture": objective != "auto",
            "kernel": objective == "sliced",
            "energy": activation == "relu",
            "diffusion": objective in ("exact", "sliced"),
        }
        names = tuple(name for name in candidate_models(n, d) if not ruled_out[name])
        if not names:
            raise ValueError(
                f"Expected a model for {n} rows with objective={objective!r} and activation={activation!r}, "
                "got none; name one with `model`, or leave the objective to 'auto'."
            )
        return names

    def _noise(self, table):
        if self.settings.noise != "auto":
            return float(self.settings.noise)
        if self.settings.objective in ("exact", "sliced"):
            return 0.0
        unit = 1.0 if self.settings.standardize else float(np.sqrt(_variances(table).mean()))
        return default_noise(*table.x.shape) * unit

    def _choose(self, prepared, trained):
        """The field of the candidate with the least held-out loss, its name, and all candidates.

        One that is solved in closed form is solved again on all rows.
        """
        key, table, noise, kept, held, tasks = prepared
        rows = table.x
        if len(tasks) == 1:
            (name,) = tasks
            field = trained[name].model if tasks[name] else self._solve(key, name, table, noise)
            return field, name, [{"model": name, "held_out_loss": None, "chosen": True}]
        common = noise or default_noise(*rows.shape)
        splits = [(kept, held)]
        if not trained and (groups := same_rows(rows)).max() + 1 >= SELECTION_FOLDS:
            # Few rows, and nothing to train: all of them may judge.
            folds = stratified_folds(np.zeros(len(rows)), groups, SELECTION_FOLDS, seed=0)
            splits = [(_part(table, inner), _part(table, outer)) for inner, outer in folds]
        # All at one noise: less of it would be in favour of a model where columns are constant.
        fields = [
            {name: trained[name].model if task else self._solve_noisy(key, name, inner, common)
             for name, task in tasks.items()}
            for inner, _ in splits
        ]  # fmt: skip
        rng = host_rng(key, Stream.SELECTION_NOISE)
        noisy = [
            [part._replace(x=part.x + common * rng.normal(size=part.x.shape)) for part in (inner, _first(outer))]
            for inner, outer in splits
        ]
        loss, losses = "minus log density", _mean_losses(fields, noisy, lambda *own: _minus_log_density(key, *own))
        if None in losses.values():
            loss = "denoising loss"
            losses = _mean_losses(fields, splits, lambda field, _, held: _denoising_loss(key, field, held, common))
        best = min(losses, key=losses.__getitem__)
        candidates = [{"model": name, "held_out_loss": loss, "chosen": name == best} for name, loss in losses.items()]
        if self.settings.verbose:
            told = ", ".join(f"{name} {loss:.4f}" for name, loss in losses.items())
            ProgressReport(self.settings.owner, "", self.settings.verbose).close(
                f"chose {best}: least held-out {loss} ({told})"
            )
        field = self._solve(key, best, table, noise) if best in SOLVED else trained[best].model
        return field, best, candidates

    def _solve(self, key, name, table, noise):
        """A field of standardised rows in closed form."""
        if self.settings.objective == "sliced":
            raise ValueError(f"Expected objective 'auto', 'exact' or 'denoising' for model {name!r}, got 'sliced'.")
        if name == "mixture" and self.settings.objective != "auto":
            raise ValueError(f"Expected objective 'auto' for model 'mixture', got {self.settings.objective!r}.")
        # A Gaussian needs no noise; a trace of it makes constant columns regular.
        return self._solve_noisy(key, name, table, noise if name == "kernel" else self._gaussian_noise(noise))

    def _solve_noisy(self, key, name, table, noise):
        options = {"noise": noise, "weights": table.weight}
        if name == "mixture":
            return fit_mixture(host_rng(key, Stream.MIXTURE), table.x, **options)
        options["covariance_of_rows"] = self._covariance(table)
        if name == "kernel":
            return fit_kernel(key, table.x, **options).field
        return fit_gaussian(table.x, **options)

    def _covariance(self, table):
        """Covariance of standardised rows; None if columns are not mixed.

        From two rows for each column on, the rows tell it by themselves. Fewer than one have no width in some
        directions of the mixed coordinates, where the shrunk correlations of the columns decide; between, both do.
        """
        if self.mix is None:
            return None
        rows, weights = table
        n, d = effective_size(rows, weights), rows.shape[1]
        covariance, weight = covariance_of_columns(rows, weights), np.clip(2 - n / d, 0, 1)
        if weight == 0:
            return covariance
        shrunk = self.mix @ covariance_of_columns(rows @ self.unmix, weights) @ self.mix
        return (1 - weight) * covariance + weight * shrunk

    def _gaussian_noise(self, noise):
        return TRACE if self.settings.noise == "auto" and self.settings.standardize else noise

    def _noise_of(self, field, noise):
        """Deviation of the noise of the rows whose field it is, in standardised units."""
        if isinstance(field, DiffusionField):
            return float(field.sigma_min)
        return float(self._gaussian_noise(noise) if isinstance(field, Gaussian | GaussianMixture) else noise)

    def _task(self, key, name, table, held_out, noise):
        """A network to be trained on standardised rows."""
        start, objective = self._network(key, name, table, held_out, noise)
        if table.weight is not None:
            objective = Weighted(objective)
        report = ProgressReport(self.settings.owner, name, self.settings.verbose)
        options = {
            "learning_rate": self.settings.learning_rate,
            "batch_size": self.settings.batch_size,
            "max_steps": AUTO_STEPS[name] if self.settings.max_steps == "auto" else self.settings.max_steps,
            "patience": PATIENCE if self.settings.early_stopping else None,
            "callback": report if report.wanted else None,
        }
        return Task(key, start, _for_training(table), objective, _for_training(held_out), options)

    def _network(self, key, name, table, held_out, noise):
        """The untrained network and its objective."""
        rows, objective = table.x, self.settings.objective
        options = {"hidden": tuple(self.settings.hidden), "activation": self.settings.activation}
        if name == "diffusion":
            if objective not in ("auto", "denoising"):
                raise ValueError(f"Expected objective 'auto' or 'denoising' for 'diffusion', got {objective!r}.")
            sigma = noise or default_noise(*rows.shape)
            return init_diffusion_field(key, rows, sigma_min=sigma, **options), MultilevelDenoising()
        if name == "energy":
            gaussian = self.settings.tails == "gaussian"
            known = {"noise": noise, "covariance_of_rows": self._covariance(table), "weights": table.weight}
            base = (
                fit_gaussian(rows, **known)
                if gaussian
                else fit_base(rows, held_out.x, held_weights=held_out.weight, **known)
            )
            start = init_energy_field(key, base, **options)
        else:
            start = init_vector_field(key, rows.shape[1], **options)
        if objective == "denoising" or (objective == "auto" and name == "energy"):
            if not noise > 0:
                raise ValueError("Expected noise > 0 for denoising, got 0; use objective='exact' to have none.")
            return start, (Denoising if objective == "denoising" else ContrastiveDenoising)(noise)
        loss = Sliced(self.settings.n_projections) if objective == "sliced" else Exact()
        return start, NoisyRows(loss, noise) if noise else loss


def _part(table, index):
    """Some rows of a table, with a mean weight of 1."""
    return WeightedRow(table.x[index], None if table.weight is None else uneven(table.weight[index]))


def _first(table):
    return WeightedRow(*(None if leaf is None else leaf[:MAX_SELECTION_ROWS] for leaf in table))


def _for_training(table):
    return table.x if table.weight is None else table._replace(weight=table.weight.astype(np.float32))


def _variances(table):
    """Variance of each column."""
    if table.weight is None:
        return table.x.var(axis=0)
    return weighted_mean((table.x - weighted_mean(*table)) ** 2, table.weight)


def _least_variance(field, table, noise):
    """Variance along the narrowest direction of the rows with noise, or of a part of a mixture, which has it."""
    if isinstance(field, GaussianMixture):
        return float(np.linalg.eigvalsh(np.asarray(field.covariances, np.float64)).min())
    covariance = np.cov(table.x, rowvar=False, dtype=np.float64, aweights=table.weight).reshape(table.x.shape[1], -1)
    return float(np.linalg.eigvalsh(covariance)[0].clip(0)) + noise**2


def _warn_of_a_rough_field(key, field, rows):
    """Warn where matching without noise learned single rows, which its own held-out loss need not show."""
    found = roughness(key, field, rows)
    if found.fooled:
        warn_caller(
            f"Score matching without noise learned single rows: its loss is {found.loss:.3g} at the rows and "
            f"{found.moved:.3g} beside them (a Gaussian has {found.gaussian:.3g} and {found.gaussian_moved:.3g}). Use "
            "objective='denoising' or noise > 0, standardize=True, fewer steps or a smaller network."
        )


def _mean_losses(fields, splits, loss):
    """The mean loss of each model over splits of the rows; None if it is unknown on one of them."""
    values = {name: [loss(own[name], *split) for own, split in zip(fields, splits, strict=True)] for name in fields[0]}
    return {name: None if None in own else float(np.mean(own)) for name, own in values.items()}


def _minus_log_density(key, field, kept, held):
    """Mean of minus the log density of held-out rows with noise; None if a few draws do not normalise it."""
    if isinstance(field, DiffusionField):
        return -float(weighted_mean(map_rows(FlowLogDensity(field), held.x.astype(np.float32)), held.weight))
    values = map_rows(Method(field, "potential"), held.x.astype(np.float32))
    offset = 0.0
    if not field.normalized:
        anchor = importance_constant(
            key,
            Method(field, "potential"),
            importance_proposal(kept.x, degrees=base_degrees(field)),
            n_draws=SELECTION_POINTS,
            anneal=False,
        )
        if anchor.error > SELECTION_ERROR:
            return None
        offset = anchor.offset
    return -float(weighted_mean(values, held.weight)) - offset


def _denoising_loss(key, field, held, noise):
    at_noise = field.at(noise) if isinstance(field, DiffusionField) else field
    weights = None if held.weight is None else np.tile(held.weight, SELECTION_DRAWS)
    return mean_loss(key, at_noise, Denoising(noise), np.tile(held.x, (SELECTION_DRAWS, 1)), weights)


def history_of(fit):
    """Losses of a trained network; nothing for a model solved in closed form."""
    if fit is None:
        return {}
    return {"loss": fit.loss, "held_out_loss": fit.held_out_loss, "steps": fit.steps, "best_step": fit.best_step}


def candidate_models(n, d):
    """What "auto" tries: a shrunk Gaussian for a handful of rows, a kernel too for tens, networks above; and mixtures.

    The kernel model is left out from a hundred rows on: it can match scores as well as an energy and yet misplace the
    masses of modes that lie apart, which the loss that decides cannot see.
    """
    if n < 10:
        return ("gaussian",)
    mixture = ("mixture",) if d <= MAX_MIXED_COLUMNS and most_parts(n, d) > 1 else ()
    others = ("kernel",) if n < 100 else ("energy",) if n < 1000 else ("energy", "diffusion")
    return ("gaussian", *mixture, *others)
