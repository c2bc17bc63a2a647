"""Rows on request: closed forms of a Gaussian and of a discrete table, relations that hold in every row, errors."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, entropy, ks_1samp, truncnorm
from sklearn.neighbors import KernelDensity

from scorefield import ScoreClassifier, ScoreDensity
from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method

N = 2000
MEAN, COVARIANCE = np.array([1.0, -2.0, 0.5]), np.array([[1.0, 0.8, 0.3], [0.8, 1.5, -0.2], [0.3, -0.2, 0.7]])
ROWS = np.random.default_rng(0).multivariate_normal(MEAN, COVARIANCE, 1000)
NAMES = ["u", "v", "w"]


@pytest.fixture(scope="module", params=["array", "frame"])
def gaussian(request):
    table = ROWS if request.param == "array" else pd.DataFrame(ROWS, columns=NAMES)
    return ScoreDensity("gaussian", random_state=0).fit(table), (list(range(3)) if request.param == "array" else NAMES)


def errors(rows, mean, covariance):
    """Differences of means and covariances from a Gaussian's, in standard errors."""
    of_means = (rows.mean(axis=0) - mean) / np.sqrt(np.diag(covariance) / len(rows))
    variances = (np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / len(rows)
    return np.abs(np.concatenate([of_means, ((np.cov(rows.T) - covariance) / np.sqrt(variances)).ravel()]))


def fitted_moments():
    return ROWS.mean(axis=0), np.cov(ROWS.T, bias=True)


def test_a_held_number_of_a_gaussian(gaussian):
    density, names = gaussian
    rows = np.asarray(density.sample(N, given={names[0]: 2.5}))
    mean, covariance = fitted_moments()
    slope = covariance[1:, 0] / covariance[0, 0]
    assert (rows[:, 0] == 2.5).all()
    rest = covariance[1:, 1:] - np.outer(slope, covariance[0, 1:])
    assert errors(rows[:, 1:], mean[1:] + slope * (2.5 - mean[0]), rest).max() < 4
    assert errors(rows[:, 1:], mean[1:], covariance[1:, 1:]).max() > 10  # the control: as if nothing were held


@pytest.mark.parametrize("bounds", [(-1.0, -0.7), (0.2, None), (None, -2.5)])
def test_bounds_of_a_gaussian(gaussian, bounds):
    """The bounded number is a truncated Gaussian; the others follow it by their regression."""
    density, names = gaussian
    rows = np.asarray(density.sample(N, given={names[1]: bounds}))
    mean, covariance = fitted_moments()
    deviation = np.sqrt(covariance[1, 1])
    low, high = (
        sign * np.inf if end is None else (end - mean[1]) / deviation for end, sign in zip(bounds, (-1, 1), strict=True)
    )
    law = truncnorm(low, high, mean[1], deviation)
    assert ks_1samp(rows[:, 1], law.cdf).pvalue > 1e-3
    others = [0, 2]
    slope = covariance[others, 1] / covariance[1, 1]
    rest = covariance[np.ix_(others, others)] - np.outer(slope, covariance[1, others])
    residuals = rows[:, others] - mean[others] - np.outer(rows[:, 1] - mean[1], slope)
    assert errors(residuals, np.zeros(2), rest).max() < 4
    # The control: unbounded rows that are clipped.
    clipped = np.clip(np.random.default_rng(1).normal(mean[1], deviation, N), *law.support())
    assert ks_1samp(clipped, law.cdf).pvalue < 1e-6


def test_listed_numbers_take_turns_by_their_density(gaussian):
    density, names = gaussian
    rows = np.asarray(density.sample(N, given={names[0]: [1.0, 2.5]}))
    mean, covariance = fitted_moments()
    logs = -0.5 * (np.array([1.0, 2.5]) - mean[0]) ** 2 / covariance[0, 0]
    share = 1 / (1 + np.exp(logs[0] - logs[1]))
    assert set(rows[:, 0]) == {1.0, 2.5}
    assert abs((rows[:, 0] == 2.5).mean() - share) < 4 * np.sqrt(share * (1 - share) / N)


def test_labels_are_drawn_given_the_conditions():
    """Two Gaussian classes: p(label | x0 = 2) is Bayes' rule on their densities of x0."""
    rng = np.random.default_rng(2)
    y = np.repeat(["a", "b"], [600, 300])
    X = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 900) + 2.0 * (y == "b")[:, None] * [1, -0.5]
    model = ScoreClassifier(ScoreDensity("gaussian"), calibration=None, random_state=0).fit(X, y)
    drawn, labels = model.sample(N, given={0: 2.0})
    moments = [(X[y == k, 0].mean(), X[y == k, 0].std(), np.mean(y == k)) for k in ("a", "b")]
    masses = [share * np.exp(-0.5 * ((2 - mean) / sd) ** 2) / sd for mean, sd, share in moments]
    p = masses[1] / sum(masses)
    assert (drawn[:, 0] == 2.0).all()
    assert abs(np.mean(labels == "b") - p) < 4 * np.sqrt(p * (1 - p) / N)
    assert abs(p - 1 / 3) > 8 * np.sqrt(p * (1 - p) / N)  # the control: shares without the condition
    own = drawn[labels == "b", 1]
    mean, slope = X[y == "b"].mean(axis=0), np.cov(X[y == "b"].T)[0, 1] / np.var(X[y == "b"][:, 0], ddof=1)
    assert abs(own.mean() - mean[1] - slope * (2 - mean[0])) < 4 * own.std() / np.sqrt(len(own))


def test_a_joint_model_of_numbers_holds_and_bounds():
    y = (ROWS[:, 0] > 1).astype(int)
    model = ScoreClassifier(n_members=1, max_steps=50, hidden=(8,), random_state=0).fit(ROWS, y)
    drawn = model.sample(40, 1, given={0: 2.0, 1: (None, 0.0)})
    assert (drawn[:, 0] == 2.0).all()
    assert (drawn[:, 1] <= 0).all()
    drawn, labels = model.sample(300, given={0: 2.5})
    assert set(labels) <= {0, 1}
    assert abs(labels.mean() - model.predict_proba(drawn)[:, 1].mean()) < 0.2
    _, labels = model.sample(500)
    assert abs(labels.mean() - y.mean()) < 4 * np.sqrt(0.25 / 500)
    assert np.array_equal(model.sample(5, 0, random_state=3), model.sample(5, 0, random_state=3, given={}))


def discrete(n, rng):
    a = rng.choice(list("xyz"), n, p=[0.5, 0.3, 0.2])
    shares = {"x": [0.7, 0.2, 0.1], "y": [0.1, 0.2, 0.7], "z": [0.3, 0.4, 0.3]}
    b = np.array([rng.choice(list("PQR"), p=shares[level]) for level in a])
    c = np.where(rng.random(n) < np.where((a == "x") == (b == "P"), 0.2, 0.75), "v", "u")
    return pd.DataFrame({"a": a, "b": b, "c": c})


@pytest.fixture(scope="module")
def table_model():
    return ScoreDensity(max_steps=100, hidden=(16,), random_state=0).fit(discrete(600, np.random.default_rng(0)))


@pytest.mark.parametrize("given", [{"a": "y"}, {"b": ["P", "R"], "c": "v"}, {"a": "z", "b": "Q"}], ids=str)
def test_a_discrete_table_has_the_conditional_shares_of_its_energy(table_model, given):
    """The energy of every cell of the table is known, and with it the conditional law."""
    cells = pd.DataFrame(list(itertools.product("xyz", "PQR", "uv")), columns=list("abc"))
    model = table_model.model_.row_model
    logs = map_rows(Method(model.joint, "total"), model.space.rows(cells)).astype(float)
    meets = np.ones(len(cells), bool)
    for name, wanted in given.items():
        meets &= cells[name].isin(np.atleast_1d(wanted))
    shares = np.where(meets, np.exp(logs - logs.max()), 0)
    shares /= shares.sum()
    drawn = table_model.sample(N, given=given, random_state=1)
    counts = cells.merge(drawn.value_counts().rename("n").reset_index(), how="left").n.fillna(0).to_numpy()
    assert counts[~meets].sum() == 0
    observed, expected = counts[meets], N * shares[meets]
    statistic, bound = ((observed - expected) ** 2 / expected).sum(), chi2.ppf(0.999, meets.sum() - 1)
    assert statistic < bound
    margins = np.prod([[np.mean(drawn[k] == cells.loc[i, k]) for k in "abc"] for i in np.flatnonzero(meets)], axis=1)
    if len(given) == 1:  # the control: the columns on their own
        assert ((observed - N * margins) ** 2 / (N * margins)).sum() > bound or np.allclose(
            margins, shares[meets], atol=0.05
        )


def test_a_discrete_table_is_learned_with_its_cells():
    """Most of what the columns of a table of 18 cells tell of each other is learned.

    Rows of one cell are no copies: members from which whole cells are held out would learn next to nothing of it.
    """
    table = discrete(1500, np.random.default_rng(3))
    model = ScoreDensity(max_steps=400, hidden=(16,), random_state=0).fit(table).model_.row_model
    cells = pd.DataFrame(list(itertools.product("xyz", "PQR", "uv")), columns=list("abc"))
    logs = map_rows(Method(model.joint, "total"), model.space.rows(cells)).astype(float)
    counts = cells.merge(table.value_counts().rename("n").reset_index(), how="left").n.fillna(0).to_numpy()
    margins = np.prod([[np.mean(table[k] == cell[k]) for k in "abc"] for _, cell in cells.iterrows()], axis=1)
    mutual_information = entropy(counts, margins)
    assert entropy(counts, np.exp(logs - logs.max())) < mutual_information / 2


def orders(n, rng):
    net = rng.uniform(5, 90, n).round(2)
    tax = (net * rng.choice([0.07, 0.19], n)).round(2)
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D")
    table = pd.DataFrame({"net": net, "tax": tax, "total": (net + tax).round(2), "order date": start})
    table["shipped"] = table["order date"] + pd.to_timedelta(rng.integers(0, 20, n), "D")
    table["city"] = rng.choice(["A", "B", "C"], n)
    table.loc[rng.random(n) < 0.1, "shipped"] = pd.NaT
    return table


RELATIONS = ["total == net + tax", ("order date", "<=", "shipped")]


@pytest.fixture(scope="module")
def order_model():
    table = orders(400, np.random.default_rng(0))
    return ScoreDensity(max_steps=60, hidden=(16,), random_state=0, constraints=RELATIONS).fit(table), table


def keeps(rows):
    cents = (100 * rows[["net", "tax", "total"]]).round().astype(int)
    late = rows["order date"] <= rows["shipped"]
    return (cents.total == cents.net + cents.tax).all() and (late | rows["shipped"].isna()).all()


@pytest.mark.parametrize(
    "given",
    [
        None,
        {"city": "A", "net": (20, 40)},
        {"shipped": (None, "2024-02-01")},
        {"total": 50.0, "city": ["A", "B"]},
    ],
    ids=str,
)
def test_every_row_keeps_relations_and_meets_conditions(order_model, given):
    model, table = order_model
    rows = model.sample(60, given=given)
    assert keeps(rows)
    assert (rows.dtypes == table.dtypes).all()
    assert rows.index.tolist() == list(range(60))
    if given is not None:
        for name, wanted in given.items():
            if isinstance(wanted, tuple):
                low, high = wanted
                assert low is None or (rows[name] >= low).all()
                assert high is None or (rows[name] <= high).all()
            else:
                assert rows[name].isin(np.atleast_1d(wanted)).all()
    assert not keeps(table.assign(shipped=table["order date"] - pd.Timedelta(days=1)))  # the control


def test_relations_at_the_call_and_what_violates_them(order_model):
    model, table = order_model
    assert (model.sample(20, constraints="tax <= net").eval("tax <= net")).all()
    with pytest.raises(ValueError, match="rows violate 'net <= tax'; correct the rows"):
        model.sample(5, constraints="net <= tax")
    wrong = table.assign(total=table.total + (np.arange(len(table)) < 3))
    with pytest.raises(ValueError, match=r"Expected training rows .*, got 3 of 400 rows violate 'total == net \+ tax'"):
        ScoreDensity(constraints=RELATIONS).fit(wrong)
    with pytest.raises(ValueError, match=r"Expected training rows .*, got 3 of 400 rows violate 'total == net \+ tax'"):
        ScoreClassifier(constraints=RELATIONS).fit(wrong, np.arange(len(wrong)) % 2)


def test_what_cannot_be_drawn_is_told(order_model, gaussian):
    model, _ = order_model
    with pytest.raises(ValueError, match=r"Expected 'net' between 5.* that were seen, got 500"):
        model.sample(5, given={"net": 500})
    with pytest.raises(ValueError, match=r"were seen .'A', 'B', 'C'., got 'Z'"):
        model.sample(5, given={"city": "Z"})
    with pytest.raises(ValueError, match="Expected n >= 1 rows to generate, got 0"):
        model.sample(0, given={"city": "A"})
    with pytest.raises(ValueError, match=r"Expected conditions that rows can meet together, got net = 80.0.., total"):
        model.sample(5, given={"net": (80, None), "total": (None, 20)})
    density, _ = gaussian
    with pytest.raises(ValueError, match="Expected conditions on columns of"):
        density.sample(5, given={"nothing": 1})


def test_a_density_without_an_energy_draws_and_keeps():
    y = (ROWS[:, 0] > 1).astype(int)
    model = ScoreClassifier(KernelDensity(bandwidth=0.3), calibration=None, random_state=0).fit(ROWS, y)
    assert (model.sample(30, 1, given={1: (-1.0, None)})[:, 1] >= -1).all()
    with pytest.raises(ValueError, match=r"for a model without an energy, .* got numbers to hold in 1 = -1.0"):
        model.sample(5, 1, given={1: -1.0})
