"""Two Gaussian classes in closed form: boundary equation, its derivative, 1-D roots, constant, error rates.

Appendix B of the paper and Eq:estimated_Gaussian_f, with its discriminative points corrected for unequal variances.
"""

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm


def _pair(mean: object, covariance: object) -> tuple[np.ndarray, np.ndarray]:
    mu = np.atleast_1d(np.asarray(mean, dtype=float))
    sigma = np.asarray(covariance, dtype=float).reshape(len(mu), len(mu))
    if not np.all(np.linalg.eigvalsh(sigma) > 0):
        raise ValueError("Expected a positive definite covariance, got one that is singular or indefinite.")
    return mu, sigma


def log_constant(mean0: object, cov0: object, mean1: object, cov1: object) -> float:
    """log C = 1/2 log(|S0| / |S1|) + 1/2 (mu0' S0^-1 mu0 - mu1' S1^-1 mu1)  in App. B."""
    (m0, s0), (m1, s1) = _pair(mean0, cov0), _pair(mean1, cov1)
    log_dets = np.linalg.slogdet(s0)[1] - np.linalg.slogdet(s1)[1]
    return float(0.5 * (log_dets + m0 @ np.linalg.solve(s0, m0) - m1 @ np.linalg.solve(s1, m1)))


def boundary_equation(x: object, mean0: object, cov0: object, mean1: object, cov1: object) -> np.ndarray:
    """BE(x) = log p1(x) - log p0(x) for rows x (n, d)  (Eq:Gaussian_decision_boundary_1)."""
    (m0, s0), (m1, s1) = _pair(mean0, cov0), _pair(mean1, cov1)
    rows = np.asarray(x, dtype=float).reshape(-1, len(m0))
    p0, p1 = np.linalg.inv(s0), np.linalg.inv(s1)
    quadratic = np.sum(rows @ (p1 - p0) * rows, axis=1)
    return -0.5 * quadratic + rows @ (p1 @ m1 - p0 @ m0) + log_constant(m0, s0, m1, s1)


def boundary_derivative(x: object, mean0: object, cov0: object, mean1: object, cov1: object) -> np.ndarray:
    """Gradient of BE at rows x (n, d): s1(x) - s0(x)  (Eq:boundary_equation_Gaussian_derivative)."""
    (m0, s0), (m1, s1) = _pair(mean0, cov0), _pair(mean1, cov1)
    rows = np.asarray(x, dtype=float).reshape(-1, len(m0))
    p0, p1 = np.linalg.inv(s0), np.linalg.inv(s1)
    return rows @ (p0 - p1) + p1 @ m1 - p0 @ m0


def boundary_roots_1d(mean0: float, sd0: float, mean1: float, sd1: float, *, log_odds: float = 0.0) -> np.ndarray:
    """Points where p1(x) exp(log_odds) = p0(x), in ascending order: none, one or two.

    The paper's closed form omits log(sd0 / sd1) and holds for equal deviations only.
    """
    if not (sd0 > 0 and sd1 > 0):
        raise ValueError(f"Expected positive standard deviations, got {sd0} and {sd1}.")
    a = 0.5 * (1 / sd0**2 - 1 / sd1**2)
    b = mean1 / sd1**2 - mean0 / sd0**2
    c = log_constant(mean0, sd0**2, mean1, sd1**2) + log_odds
    if a == 0:
        return np.array([]) if b == 0 else np.array([-c / b])
    discriminant = b**2 - 4 * a * c
    if discriminant < 0:
        return np.array([])
    # This form avoids cancellation, since q has the opposite sign of b.
    q = -0.5 * (b + np.copysign(np.sqrt(discriminant), b))
    return np.unique([q / a, c / q]) if q != 0 else np.array([0.0])


class TwoGaussians:
    """Two Gaussian classes with known moments, in closed form (Appendix B of the paper).

    Parameters
    ----------
    mean0, mean1 : float or array of shape (d,)
    cov0, cov1 : float or array of shape (d, d)
        Covariances; variances in one dimension.
    log_odds : float
        log p(1) - log p(0) of the priors.

    Attributes
    ----------
    log_constant : float
        The constant log C of the paper's boundary equation, with the log odds added.

    Examples
    --------
    >>> from scorefield.paper import TwoGaussians
    >>> classes = TwoGaussians(0.0, 1.0, 4.0, 1.0)
    >>> classes.roots(), [round(error, 4) for error in classes.errors()]
    (array([2.]), [0.0228, 0.0228])
    """

    def __init__(self, mean0: object, cov0: object, mean1: object, cov1: object, *, log_odds: float = 0.0) -> None:
        (m0, s0), (m1, s1) = _pair(mean0, cov0), _pair(mean1, cov1)
        if len(m0) != len(m1):
            raise ValueError(f"Expected means of one length, got {len(m0)} and {len(m1)}.")
        self._moments = (m0, s0, m1, s1)
        self.log_odds = float(log_odds)
        self.log_constant = log_constant(*self._moments) + self.log_odds

    def decision_function(self, X: object) -> np.ndarray:
        """log p(1 | x) - log p(0 | x) at the rows of X, shape (n,): the boundary equation."""
        return boundary_equation(X, *self._moments) + self.log_odds

    def gradient(self, X: object) -> np.ndarray:
        """Gradient of the decision function at the rows of X, shape (n, d)."""
        return boundary_derivative(X, *self._moments)

    def roots(self) -> np.ndarray:
        """Points of the boundary in one dimension, in ascending order: none, one or two."""
        m0, s0, m1, s1 = self._moments
        if len(m0) > 1:
            raise ValueError(
                f"Expected one dimension, got {len(m0)}; find_boundary(decision_function, X) has no limit."
            )
        sds = float(np.sqrt(s0[0, 0])), float(np.sqrt(s1[0, 0]))
        return boundary_roots_1d(float(m0[0]), sds[0], float(m1[0]), sds[1], log_odds=self.log_odds)

    def errors(self) -> tuple[float, float]:
        """P(decide 1 | class 0) and P(decide 0 | class 1) of the Bayes rule."""
        return misclassification_probability(*self._moments, log_odds=self.log_odds)


def _below_zero(eigenvalues: np.ndarray, linear: np.ndarray, constant: float) -> float:
    """P(sum_j eigenvalues_j z_j^2 + linear_j z_j + constant < 0) for standard normal z, by Gil-Pelaez inversion.

    The characteristic function is a product over j of exp(-t^2 linear_j^2 / (2 (1 - 2 i t e_j))) / sqrt(1 - 2 i t e_j).
    Rotating the path of t by 30 degrees, to the side where exp(i t c) decays, makes the integrand decay exponentially;
    the arc around the pole at zero contributes its angle.
    """
    curved, slope = eigenvalues != 0, np.linalg.norm(linear)
    if not curved.any() and slope == 0:
        return 0.5 * (1.0 - float(np.sign(constant)))  # a constant; zero is a tie, which chance decides
    if not curved.any():
        return float(norm.cdf(-constant / slope))
    apex = constant - np.sum(linear[curved] ** 2 / (4 * eigenvalues[curved]))
    angle = np.copysign(np.pi / 6, apex)
    turn = np.exp(1j * angle)

    def integrand(u: float) -> float:
        t = u * turn
        factor = 1 - 2j * t * eigenvalues
        log_phi = np.sum(-0.5 * np.log(factor) - 0.5 * t**2 * linear**2 / factor) + 1j * t * constant
        return float(np.exp(log_phi).imag / u)

    pieces = [quad(integrand, low, high, limit=200)[0] for low, high in ((0, 1), (1, np.inf))]
    return float(np.clip(0.5 - (sum(pieces) + angle) / np.pi, 0.0, 1.0))


def misclassification_probability(
    mean0: object, cov0: object, mean1: object, cov1: object, *, log_odds: float = 0.0
) -> tuple[float, float]:
    """P(decide 1 | class 0) and P(decide 0 | class 1) of the Bayes rule, for any dimension and unequal covariances.

    Under either class the boundary equation is a quadratic form of Gaussian variables, whose distribution is given by
    one integral. For equal covariances and `log_odds` 0 both are Phi(-D / 2) with the Mahalanobis distance D, which is
    one half for identical classes.
    """
    (m0, s0), (m1, s1) = _pair(mean0, cov0), _pair(mean1, cov1)
    errors = []
    for mean, cov, sign in ((m0, s0, -1.0), (m1, s1, 1.0)):
        factor = np.linalg.cholesky(cov)
        curvature = 0.5 * factor.T @ (np.linalg.inv(s0) - np.linalg.inv(s1)) @ factor
        values, vectors = np.linalg.eigh(curvature)
        values = np.where(np.abs(values) < 1e-12 * max(1.0, np.abs(values).max()), 0.0, values)
        slope = vectors.T @ factor.T @ boundary_derivative(mean, m0, s0, m1, s1)[0]
        height = float(boundary_equation(mean, m0, s0, m1, s1)[0]) + log_odds
        errors.append(_below_zero(sign * values, sign * slope, sign * height))
    return errors[0], errors[1]
