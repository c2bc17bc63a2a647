"""Comparison of arms over many tables: mean ranks with a critical difference, corrected intervals, wins and losses.

Ranks and Nemenyi's difference follow Demsar (2006), intervals over overlapping training parts Nadeau & Bengio (2003).
"""

import math

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range
from scipy.stats import t as student

from scorefield.display.displays import COLOURS
from scorefield.evaluation.statistics import Estimate

EQUIVALENT = 0.01  # smaller differences do not matter in practice and count as ties


def corrected_interval(differences, test_share, *, confidence=0.95):
    """Mean and interval of differences over splits whose training parts overlap.

    `test_share` is the number of test rows divided by the number of training rows.
    """
    differences = np.asarray(differences, dtype=float)
    n, mean = len(differences), float(np.mean(differences))
    if n < 2:
        return Estimate(mean, math.nan, math.nan, n)
    error = math.sqrt((1 / n + test_share) * np.var(differences, ddof=1))
    reach = float(student.ppf(0.5 + confidence / 2, n - 1)) * error
    return Estimate(mean, mean - reach, mean + reach, n)


def corrected_share(values, test_share, *, confidence=0.95):
    """Mean and interval, inside [0, 1], of a measure in [0, 1] over splits whose training parts overlap.

    The interval is that of arcsin(sqrt(value)), whose variance does not depend on the mean of a share.
    """
    found = corrected_interval(np.arcsin(np.sqrt(values)), test_share, confidence=confidence)
    low, high = np.sin(np.clip([found.low, found.high], 0, math.pi / 2)) ** 2
    return Estimate(float(np.mean(values)), float(low), float(high), found.n)


def mean_ranks(scores, *, lower_is_better=False):
    """Mean rank of each arm (columns) over tables (rows); 1 is best, and ties share a rank."""
    signed = np.asarray(scores, dtype=float) * (1 if lower_is_better else -1)
    return np.mean([rankdata(row) for row in signed], axis=0)


def critical_difference(n_arms, n_tables):
    """Nemenyi's critical difference: smaller differences between mean ranks are not significant at 5 %."""
    quantile = studentized_range.ppf(0.95, n_arms, np.inf) / math.sqrt(2)
    return float(quantile * math.sqrt(n_arms * (n_arms + 1) / (6 * n_tables)))


def friedman(scores):
    """Friedman's p-value for equal arms."""
    scores = np.asarray(scores)
    return float(friedmanchisquare(*scores.T).pvalue) if scores.shape[1] > 2 and len(scores) > 2 else math.nan


def signed_rank(gains, *, alternative="two-sided"):
    """Wilcoxon's signed-rank p-value for paired gains over tables: zeros are dropped, ties share a rank.

    It is exact given the ranks. scipy approximates it where ranks are tied, and how depends on its version.
    """
    gains = np.asarray(gains)[np.flatnonzero(gains)]
    halves = (2 * rankdata(np.abs(gains))).astype(int)  # shared ranks are multiples of one half
    law = np.ones(1)  # of the sum of the positive ranks, in halves, if all signs are equally likely
    for rank in halves:
        law = (np.pad(law, (0, rank)) + np.pad(law, (rank, 0))) / 2
    total = halves[gains > 0].sum()
    chances = {"greater": law[total:].sum(), "less": law[: total + 1].sum()}
    return float(min(1.0, 2 * min(chances.values()) if alternative == "two-sided" else chances[alternative]))


def wins_ties_losses(gains, band=EQUIVALENT):
    """Number of tables with a gain above the band, inside it and below it."""
    gains = np.asarray(gains)
    return int(np.sum(gains > band)), int(np.sum(np.abs(gains) <= band)), int(np.sum(gains < -band))


def draw_critical_difference(names, ranks, difference, ax):
    """Draw arms at their mean ranks; a bar joins those without a significant difference."""
    order = np.argsort(ranks)
    low, high = math.floor(min(ranks)), math.ceil(max(ranks))
    depth = (len(names) + 1) // 2
    ax.set(xlim=(low - 0.15, high + 0.15), ylim=(-1.1 - depth, 1.6))
    ax.axis("off")
    ax.plot([low, high], [0, 0], color="black")
    for tick in range(low, high + 1):
        ax.plot([tick, tick], [0, 0.12], color="black")
        ax.text(tick, 0.2, str(tick), ha="center")
    ax.plot([low, low + difference], [1.0, 1.0], color="black", linewidth=2)
    ax.text(low + difference / 2, 1.08, f"critical difference {difference:.2f}", ha="center", fontsize=8)
    for place, index in enumerate(order):
        left = place < depth
        level = -0.9 - (place if left else len(names) - 1 - place)
        x, edge = ranks[index], low if left else high
        ax.plot([x, x, edge], [0, level, level], color="0.4", linewidth=0.8)
        text = f"{names[index]}  {x:.2f}" if left else f"{x:.2f}  {names[index]}"
        ax.text(edge, level + 0.08, text, ha="left" if left else "right", fontsize=8)
    level, reached = -0.2, -1
    for start, index in enumerate(order):
        alike = [place for place in range(start, len(order)) if ranks[order[place]] - ranks[index] <= difference]
        if len(alike) > 1 and alike[-1] > reached:
            ax.plot([ranks[index], ranks[order[alike[-1]]]], [level, level], color=COLOURS[0], linewidth=3)
            level, reached = level - 0.14, alike[-1]
