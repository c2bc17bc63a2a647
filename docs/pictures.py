"""Draw the picture of the README and of the first page: `python docs/pictures.py` writes docs/_static/penguins.png."""

import io
import pathlib

import matplotlib.pyplot as plt
from PIL import Image

from scorefield import (
    BoundaryDisplay,
    DensityDisplay,
    SamplesDisplay,
    ScoreClassifier,
    ScoreFieldDisplay,
    load_penguins,
)

COLUMNS = ["bill_length_mm", "bill_depth_mm"]


def draw():
    """Generated rows of a model of the whole table; field, density and boundary of one of two columns."""
    penguins = load_penguins()
    whole = ScoreClassifier(random_state=0).fit(penguins.drop(columns="species"), penguins["species"])
    two = penguins.dropna(subset=COLUMNS)
    # In equal units, so that arrows have the directions in which densities rise on the picture.
    X, y = (two[COLUMNS] - two[COLUMNS].mean()) / two[COLUMNS].std(), two["species"]
    model = ScoreClassifier(random_state=0).fit(X, y)
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    SamplesDisplay.from_estimator(
        whole, penguins, penguins["species"], n=300, features=COLUMNS, random_state=0, ax=axes[0], size=14
    )
    axes[0].legend(fontsize=7)
    ScoreFieldDisplay.from_estimator(model, X, y, ax=axes[1], color="black")
    DensityDisplay.from_estimator(model, X, ax=axes[2], filled=True, colorbar=False)
    BoundaryDisplay.from_estimator(
        model, X, classes=["Adelie", "Chinstrap"], ax=axes[2], size=0, boundary_color="white", grid_resolution=40
    )
    axes[0].set_title("Sample: rows of three species")
    axes[1].set_title("The score field they follow")
    axes[2].set_title("Integrate and decide: density and boundary")
    for ax, unit in zip(axes, ("mm", "standardised", "standardised"), strict=True):
        ax.set(xlabel=f"bill length, {unit}", ylabel=f"bill depth, {unit}")
    axes[1].get_legend().remove()
    return figure


if __name__ == "__main__":
    stream = io.BytesIO()
    draw().savefig(stream, dpi=90)
    few_colours = Image.open(stream).convert("RGB").quantize(256)  # less than half the size
    few_colours.save(pathlib.Path(__file__).parent / "_static" / "penguins.png", optimize=True)
