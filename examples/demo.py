"""The paper's 2-D example from end to end: learn two score fields, sample them, recover densities, find the boundary.

python examples/demo.py [output folder]
"""

import pathlib
import sys
import time

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from scorefield import Langevin
from scorefield._tree import Method, map_rows
from scorefield.decisions import LogRatio, find_boundary
from scorefield.fields import fit_gaussian, init_energy_field
from scorefield.gaussian_theory import boundary_equation, misclassification_probability
from scorefield.normalization import importance_anchor
from scorefield.objectives import ContrastiveDenoising, default_noise, fisher_divergence
from scorefield.training import train_many
from scorefield.truth import paper_classes_2d

BLUE, RED = "#0072B2", "#D55E00"  # distinguishable with every common form of colour blindness
N_ROWS = 200


def learn(key, tables):
    """One energy per class, trained together; log densities are anchored by importance sampling."""
    models = [init_energy_field(key, fit_gaussian(rows), hidden=(128, 128)) for rows in tables]
    fits = train_many(key, models, tables, ContrastiveDenoising(default_noise(*tables[0].shape)))
    fields = [fit.model for fit in fits]
    anchors = [
        importance_anchor(key, Method(field, "potential"), rows) for field, rows in zip(fields, tables, strict=True)
    ]
    return fields, anchors


def grid_2d(n):
    axis = np.linspace(-4, 8, n, dtype=np.float32)
    return axis, np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def draw_fields(ax, truth, field, rows, colour, title):
    _, points = grid_2d(17)
    near = np.sum((points - rows.mean(axis=0)) ** 2, axis=1) < 3.2**2
    points = points[near]
    for source, shade, label in ((truth, "0.6", "true"), (field, colour, "learned")):
        arrows = map_rows(Method(source, "__call__"), points)
        ax.quiver(*points.T, *arrows.T, color=shade, angles="xy", scale=45, width=0.005, label=label)
    ax.scatter(*rows.T, s=6, color=colour, alpha=0.35)
    ax.set_title(title)
    ax.legend(loc="lower right", fontsize=8)


def draw_densities(ax, truths, fields, anchors):
    axis, points = grid_2d(121)
    levels = [0.002, 0.02, 0.08, 0.15]
    for truth, field, anchor, colour in zip(truths, fields, anchors, (BLUE, RED), strict=True):
        learned = np.exp(map_rows(Method(field, "potential"), points) + anchor.offset).reshape(121, 121)
        exact = np.exp(map_rows(Method(truth, "potential"), points)).reshape(121, 121)
        ax.contour(axis, axis, learned, levels=levels, colors=colour, linewidths=1.4)
        ax.contour(axis, axis, exact, levels=levels, colors="0.6", linewidths=0.8, linestyles="dashed")
    ax.set_title("Recovered densities (dashed: true) and boundary")


def main(folder):
    begin = time.perf_counter()
    key = jax.random.key(0)
    truths = paper_classes_2d()
    tables = [np.asarray(t.sample(k, N_ROWS)) for t, k in zip(truths, jax.random.split(key), strict=True)]
    fields, anchors = learn(key, tables)
    draws = [
        Langevin(step_size=0.05, chain_length=100, discard=0.5).sample(key, field, 2000, rows)
        for field, rows in zip(fields, tables, strict=True)
    ]
    log_odds = anchors[1].offset - anchors[0].offset
    ratio = LogRatio(*(Method(field, "potential") for field in fields), log_odds=float(log_odds))
    _, starts = grid_2d(13)
    found = find_boundary(ratio, starts[np.abs(starts.sum(axis=1) - 4) < 4], tol=1e-4)
    on_boundary = found.points[found.converged & (np.abs(found.points - 2) < 6).all(axis=1)]

    fresh = [np.asarray(t.sample(jax.random.key(9), 5000)) for t in truths]
    for label, (truth, field, anchor, test) in enumerate(zip(truths, fields, anchors, fresh, strict=True)):
        error = np.abs(map_rows(Method(field, "potential"), test) + anchor.offset
                       - map_rows(Method(truth, "potential"), test)).mean()  # fmt: skip
        print(
            f"class {label}: {N_ROWS} rows; mean |log p - truth| {error:.2f} nats; "
            f"Fisher divergence {fisher_divergence(field, truth, test):.3f} "
            f"(a Gaussian fit: {fisher_divergence(fit_gaussian(tables[label]), truth, test):.3f})"
        )
    wrong = [float(np.mean((map_rows(ratio, test) >= 0) != label)) for label, test in enumerate(fresh)]
    moments = [a for t in truths for a in (t.means[0], t.covariances[0])]
    bayes = misclassification_probability(*moments)
    print(f"error rates on fresh rows: {wrong[0]:.3%}, {wrong[1]:.3%} (Bayes: {bayes[0]:.3%}, {bayes[1]:.3%})")
    distance = np.abs(boundary_equation(on_boundary, *moments)).mean()
    print(f"boundary: {found.converged.sum()} of {len(found.points)} Newton starts converged; "
          f"true log ratio there {distance:.2f} nats on average")  # fmt: skip

    figure, axes = plt.subplots(2, 2, figsize=(10, 9.5), layout="constrained", sharex=True, sharey=True)
    for label, colour in enumerate((BLUE, RED)):
        draw_fields(
            axes[0, label], truths[label], fields[label], tables[label], colour, f"Score field of class {label}"
        )
        axes[1, 0].scatter(*draws[label].rows.T, s=2, alpha=0.3, color=colour, label=f"generated, class {label}")
        axes[1, 0].scatter(*tables[label].T, s=5, color="black", alpha=0.5)
    axes[1, 0].set_title("Langevin samples (black: the rows learned from)")
    axes[1, 0].legend(loc="lower right", fontsize=8, markerscale=4)
    draw_densities(axes[1, 1], truths, fields, anchors)
    axes[1, 1].scatter(*on_boundary.T, s=14, color="black", marker="x", label="Newton boundary")
    axes[1, 1].legend(loc="lower right", fontsize=8)
    for ax in axes.flat:
        ax.set(xlim=(-4, 8), ylim=(-4, 8), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    folder.mkdir(parents=True, exist_ok=True)
    target, partial = folder / "scorefield.png", folder / ".scorefield.partial.png"
    figure.savefig(partial, dpi=80)
    partial.replace(target)
    print(f"wrote {target} after {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
