"""Display of the calibration of probabilities, with intervals."""

import numpy as np
from scipy.stats import beta

from scorefield.display.displays import COLOURS, new_axes
from scorefield.display.planes import plain_label

CONFIDENCE = 0.95


class CalibrationDisplay:
    """Announced probabilities and observed shares, with an interval for each bin.

    Unlike scikit-learn's display of this name, bins hold equally many rows and show how far chance reaches.

    Parameters
    ----------
    announced, observed : ndarray of shape (bins,)
        Mean probability and share of the class in each bin.
    low, high : ndarray of shape (bins,)
        Interval of the share (Clopper & Pearson 1934).
    label : label
    name : str

    Attributes
    ----------
    ax_ : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import CalibrationDisplay
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.uniform(size=500)
    >>> display = CalibrationDisplay.from_predictions(rng.uniform(size=500) < proba, proba)
    >>> bool(np.mean((display.low < display.announced) & (display.announced < display.high)) > 0.5)
    True
    """

    def __init__(self, announced, observed, low, high, label=None, name=None):
        self.announced = announced
        self.observed = observed
        self.low = low
        self.high = high
        self.label = label
        self.name = name

    @classmethod
    def from_estimator(cls, model, X, y, label=None, n_bins=8, ax=None, **plot):
        """Probabilities of a fitted classifier on rows that it has not seen; ``label=None`` is its last class."""
        label = model.classes_[-1] if label is None else label
        where = np.flatnonzero(model.classes_ == label)
        if len(where) == 0:
            raise ValueError(f"Expected a label of {model.classes_.tolist()}, got {label!r}.")
        proba = model.predict_proba(X)[:, where[0]]
        name = type(model).__name__
        return cls.from_predictions(np.asarray(y) == label, proba, label, n_bins, name=name, ax=ax, **plot)

    @classmethod
    def from_predictions(cls, found, proba, label=None, n_bins=8, name=None, ax=None, **plot):
        """Given whether each row is of the class, and its probability."""
        found, proba = np.asarray(found, bool), np.asarray(proba, float)
        if found.shape != proba.shape or len(proba) == 0:
            raise ValueError(f"Expected one probability for each row, got {proba.shape} for {found.shape} rows.")
        parts = np.array_split(np.argsort(proba, kind="stable"), min(n_bins, len(proba)))
        counts, hits = np.array([len(part) for part in parts]), np.array([found[part].sum() for part in parts])
        tail = (1 - CONFIDENCE) / 2
        low = np.where(hits > 0, beta.ppf(tail, np.maximum(hits, 1), counts - hits + 1), 0.0)
        high = np.where(hits < counts, beta.ppf(1 - tail, hits + 1, np.maximum(counts - hits, 1)), 1.0)
        announced = np.array([proba[part].mean() for part in parts])
        return cls(announced, hits / counts, low, high, label, name).plot(ax, **plot)

    def plot(self, ax=None, **options):
        """Draw the bins; options go to matplotlib's ``errorbar``."""
        what = "the class" if self.label is None else plain_label(self.label)
        self.ax_ = new_axes(ax, [f"probability of {what}", "share in the rows"], "Calibration")
        self.ax_.plot([0, 1], [0, 1], color="0.7", linewidth=0.8)
        reach = [self.observed - self.low, self.high - self.observed]
        style = {"color": COLOURS[0], "fmt": "o-", "markersize": 4, "capsize": 2, "label": self.name}
        self.ax_.errorbar(self.announced, self.observed, np.maximum(reach, 0), **{**style, **options})
        self.ax_.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        if self.name is not None:
            self.ax_.legend()
        return self
