"""From fields to answers: line integrals, anchors, Bayes' rule, decision boundaries, two Gaussians in closed form."""

from scorefield.inference.anchors import counting_anchor, gaussian_anchor, importance_anchor
from scorefield.inference.decisions import decide, expected_costs
from scorefield.inference.line_integrals import line_integral, path_gap, smooth

__all__ = [
    "counting_anchor",
    "decide",
    "expected_costs",
    "gaussian_anchor",
    "importance_anchor",
    "line_integral",
    "path_gap",
    "smooth",
]
