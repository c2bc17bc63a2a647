"""`errata`: errors and gaps of the paper, each with a check that shows it."""

import jax
import jax.numpy as jnp
import numpy as np

from scorefield.estimators.density import ScoreDensity
from scorefield.fields.mixtures import mixture
from scorefield.fields.neural import init_vector_field
from scorefield.inference.line_integrals import path_gap
from scorefield.inference.two_gaussians import boundary_equation, boundary_roots_1d
from scorefield.sampling.samplers import Langevin
from scorefield.studies.engine.experiment import Experiment, Section, Table, of_kind
from scorefield.studies.paper.settings import exact_log_density
from scorefield.training.loop import train
from scorefield.training.losses import Exact, mean_loss


def squared_curvature(seed, config):
    """Minimisers of both objectives for N(0, 1) and s(x) = -a x, in closed form."""
    a = np.linspace(0, 2, 201)
    right, printed = 0.5 * a**2 - a, 0.5 * a**2 + a**2
    return (
        f"least at a = {a[np.argmin(right)]:.2f} (truth: 1); with the printed square at a = {a[np.argmin(printed)]:.2f}"
    )


def score_by_variance(seed, config):
    sigma, x = 2.0, 3.0
    slope = float(jax.grad(lambda v: jax.scipy.stats.norm.logpdf(v, 0.0, sigma))(x))
    return f"N(0, 2^2) at x = 3: slope {slope:.2f}; -x / sigma^2 = {-x / sigma**2:.2f}; -x / sigma = {-x / sigma:.2f}"


def counts(seed, config):
    return (
        f"699 + 42 = {699 + 42} test rows, not 571; 170 : 2830 is 1 : {2830 / 170:.1f}, not 1 : 95; 0.01 % of 3,000 "
        f"labels is {3000 * 1e-4:.1f} of a label"
    )


def discriminative_points(seed, config):
    mean0, sd0, mean1, sd1 = -2.0, 1.0, 2.0, 2.0
    printed = sorted([(sd0 * mean1 + s * sd1 * mean0) / (sd0 + s * sd1) for s in (1, -1)])
    roots = boundary_roots_1d(mean0, sd0, mean1, sd1)
    ratio = [np.abs(boundary_equation(x, mean0, sd0**2, mean1, sd1**2)).max() for x in (printed, roots)]
    return (
        f"N(-2, 1) v N(2, 4): |log ratio| at the printed points {ratio[0]:.2f}, at the roots of the quadratic "
        f"{ratio[1]:.1e}"
    )


def posterior_identity(seed, config):
    def log_posterior(x):
        logs = jnp.stack([jax.scipy.stats.norm.logpdf(x, -2.0, 1.0), jax.scipy.stats.norm.logpdf(x, 2.0, 1.0)])
        return jax.nn.log_softmax(logs)[1]

    x = 0.4
    slope, (s0, s1) = float(jax.grad(log_posterior)(x)), (-2.0 - x, 2.0 - x)
    rest = 1 - float(jnp.exp(log_posterior(x)))
    return f"slope of log p(y=1|x) {slope:.4f}; (1 - p)(s1 - s0) = {rest * (s1 - s0):.4f}; (1 - p)(s0 - s0) = 0"


def newton_step(seed, config):
    gradient, x = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    value = gradient @ x
    right, printed = x - value * gradient / (gradient @ gradient), x - value / gradient
    return (
        f"ratio g.x = {value:.0f} at x = (3, 4): after one step along the gradient {gradient @ right:.1e}, after "
        f"dividing by each component {gradient @ printed:.0f}"
    )


def path_dependence(seed, config):
    key = jax.random.key(seed)
    field = init_vector_field(key, 2, hidden=(64, 64))
    gap = path_gap(field, np.zeros(2), np.random.default_rng(seed).normal(size=(200, 2)))
    return f"two paths to 200 points on an unconstrained network differ by {gap.mean():.2f} nats on average"


def relu_bias(seed, config):
    rows = np.random.default_rng(seed).normal(size=(20_000, 10))
    losses = {}
    for activation in ("relu", "softplus"):
        start = init_vector_field(jax.random.key(seed), 10, hidden=(128, 128), activation=activation)
        fit = train(jax.random.key(seed), start, rows, Exact(), max_steps=config["steps"], learning_rate=1e-3)
        losses[activation] = mean_loss(jax.random.key(seed), fit.model, Exact(), rows[:5000])
    return (
        f"N(0, I) in 10-D, {config['steps']} steps: loss {losses['relu']:.2f} with ReLU, {losses['softplus']:.2f} "
        "with softplus, optimum -5"
    )


def overfitting(seed, config):
    rng = np.random.default_rng(seed)
    rows, fresh = rng.normal(size=(150, 10)).astype(np.float32), rng.normal(size=(2000, 10)).astype(np.float32)
    start = init_vector_field(jax.random.key(seed), 10, hidden=(128, 128))
    fit = train(
        jax.random.key(seed), start, rows, Exact(), max_steps=config["steps"], patience=None, validation_fraction=0.0
    )
    kept, new = (mean_loss(jax.random.key(seed), fit.model, Exact(), r) for r in (rows, fresh))
    return f"150 rows of N(0, I) in 10-D, no early stopping: loss {kept:.1f} on the rows, {new:.1f} on fresh ones"


def chain_is_noise(seed, config):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(128, 10)).astype(np.float32)
    density = ScoreDensity(model="gaussian", standardize=False, random_state=seed).fit(rows)
    drawn = density.draw(2000, seed, sampler=Langevin(0.0005, 40, 0.9), X_start=rows)
    moved = (drawn.rows - rows[drawn.parents]).std()
    return f"l = 40, eps = .0005: rows move by {moved:.3f} a column (sqrt(l eps) = {np.sqrt(40 * 0.0005):.3f})"


def anchor_is_a_guess(seed, config):
    truth = mixture([1.0, 1.0], [[-3.0], [3.0]], [[[1.0]], [[1.0]]])
    rows = np.asarray(truth.sample(jax.random.key(seed), 2000))
    guess = 1 / np.sqrt(2 * np.pi * rows.var())
    exact = float(np.exp(exact_log_density(truth, rows.mean(axis=0, keepdims=True))[0]))
    return f"two modes at -3 and 3: density at the mean {exact:.4f}, Gaussian guess {guess:.4f}"


def robustness(seed, config):
    return "none"


ENTRIES = (
    (
        "Eq. 2b, first line, squares the second derivative.",
        "1/2 (d log p / dx)^2 + d^2 log p / dx^2",
        squared_curvature,
    ),
    ("The 1-D Gaussian score is divided by sigma in two places.", "(mu - x) / sigma^2", score_by_variance),
    ("Counts: 571 test rows, ratio 1 : 95, 0.01 % label noise.", "741, about 1 : 17, 1 %", counts),
    (
        "App. B's closed-form discriminative points drop log(sigma0 / sigma1).",
        "roots of the quadratic; equal only for equal sigmas",
        discriminative_points,
    ),
    (
        "App. A writes s0 twice where s0 and s1 are meant; App. B assigns label 0 where 1 is meant.",
        "(1 - p)(s1 - s0)",
        posterior_identity,
    ),
    ("The Newton-Raphson equation divides by a gradient vector.", "x - g(x) grad g / |grad g|^2", newton_step),
    (
        "A field from an unconstrained network is taken to be conservative.",
        "measure the path gap, or learn an energy",
        path_dependence,
    ),
    (
        "ReLU with exact score matching.",
        "a smooth activation: the kinks get no gradient from the divergence",
        relu_bias,
    ),
    (
        "Exact score matching on a few hundred rows without a held-out loss.",
        "noise, held-out loss, early stopping",
        overfitting,
    ),
    ("Short chains are not compared with noise.", "random over-sampling with noise is a baseline", chain_is_noise),
    ("The Gaussian anchor at the mean.", "importance sampling, or an intercept fitted to labels", anchor_is_a_guess),
    ("Robustness to adversarial perturbation is suggested.", "contradicted on images by later work", robustness),
)


def run(seed, config):
    return [{"kind": "entry", "number": i + 1, "check": check(seed, config)} for i, (_, _, check) in enumerate(ENTRIES)]


def show(rows):
    checks = {row["number"]: row["check"] for row in of_kind(rows, "entry", seed=0)}
    table = [[i, wrong, right, checks[i]] for i, (wrong, right, _) in enumerate(ENTRIES, start=1)]
    caption = "Each with a check that shows it; the last has none, and the library claims nothing of the kind."
    return Section([], [Table(caption, ["", "in the paper", "instead", "check"], table)])


ERRATA = Experiment(
    "errata",
    "Appendix: where the paper is wrong or silent",
    "Slips of the text and gaps of the method, with the correction that this library makes.",
    run,
    show,
    1,
    1,
    {"steps": 1500},
    {"steps": 500},
)
