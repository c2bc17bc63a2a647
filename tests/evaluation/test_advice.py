"""advise on tables where the truth is known."""

import itertools
import re
import subprocess
import sys
import types
import warnings

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import SMOTE, SMOTEN, SMOTENC
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, brier_score_loss, f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import _safe_indexing

from scorefield import ScoreClassifier, advise
from scorefield.evaluation import advice
from scorefield.evaluation.advice import _splits, _thinned
from scorefield.evaluation.preparation import prepare
from scorefield.evaluation.recipes import CODE, NOISE, OUR_CLASSIFIER, OURS, OURS_TUNED, TEACHING, code_for, written
from scorefield.evaluation.remedies import NOTHING, THRESHOLD, WEIGHTS, boosting
from scorefield.evaluation.statistics import gain_between, measured_average_precision, measured_f1, measured_mean
from scorefield.evaluation.verdicts import METRICS, decide, gain_over_nothing, words


def f1_gain(y, first, second, groups):
    return gain_between(measured_f1(y, first), measured_f1(y, second), y, groups)


def verdict_on(y, called):
    """Winner and verdict by F1 of decisions about rows that are all different."""
    return decide(METRICS["f1"], y, {name: measured_f1(y, own) for name, own in called.items()}, np.arange(len(y)))


def keep_remedies(monkeypatch, *names):
    """Only these remedies, and few thresholds, since the others take longer."""
    all_remedies = advice._remedies

    def few(*given):
        models = all_remedies(*given)
        models[THRESHOLD].set_params(thresholds=20)
        return {name: model for name, model in models.items() if name in names}

    monkeypatch.setattr(advice, "_remedies", few)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "seed"), [(DecisionTreeClassifier(max_depth=3, random_state=0), 0), (LogisticRegression(), 1)]
)
def test_pure_noise_has_no_remedy(model, seed):
    """A tuned threshold has a higher F1 even there: it calls every row rare. That is no reason to use it."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(400, 3)), np.repeat(["no", "yes"], [340, 60])
    found = advise(X, y, model, minutes=None)
    assert found.verdict.startswith("Undecided")
    finds_some = found.table[0]["f1"] > 0
    assert found.winner == (NOTHING if finds_some else None)
    assert bool(found.code) == finds_some
    assert found.n_splits == 5
    assert {row["remedy"] for row in found.table} >= {
        NOTHING,
        WEIGHTS,
        THRESHOLD,
        OUR_CLASSIFIER,
        TEACHING,
        "SMOTE",
        OURS,
    }
    rows = {row["remedy"]: row for row in found.table}
    assert rows[THRESHOLD]["f1"] > rows[NOTHING]["f1"] + 0.05  # the trap is there


def test_one_teacher_is_fitted_for_each_training_part(monkeypatch):
    """It serves the classifier, the learner that it teaches and the over-sampler, and never sees the test part."""
    fitted = []

    class Light(ScoreClassifier):
        def __init__(self, columns=None, random_state=None):
            super().__init__(n_members=1, hidden=(8,), max_steps=20, columns=columns, random_state=random_state)

        def fit(self, X, y):
            fitted.append(len(y))
            return super().fit(X, y)

    monkeypatch.setattr(advice, "ScoreClassifier", Light)
    keep_remedies(monkeypatch, NOTHING, OUR_CLASSIFIER, TEACHING, OURS)
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (170, 2)), rng.normal(2, 1, (30, 2))])
    found = advise(X, np.repeat([0, 1], [170, 30]), LogisticRegression(), minutes=None)
    assert fitted == [160] * 5
    rows = {row["remedy"]: row for row in found.table}
    assert rows[TEACHING]["brier"] != rows[NOTHING]["brier"]


def test_separable_classes_leave_nothing_to_gain(monkeypatch):
    keep_remedies(monkeypatch, NOTHING, WEIGHTS, THRESHOLD, "SMOTE")
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-10, 1, (200, 2)), rng.normal(10, 1, (40, 2))])
    found = advise(X, np.repeat([0, 1], [200, 40]), LogisticRegression(), minutes=None)
    assert found.verdict.startswith("No difference: do nothing")
    assert found.winner == NOTHING


def test_a_weak_learner_is_helped_by_something(monkeypatch):
    """Logistic regression at one half hardly predicts the rare class: a remedy raises F1, and the advice says so."""
    keep_remedies(monkeypatch, NOTHING, WEIGHTS, THRESHOLD, NOISE, "SMOTE")
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (1800, 2)), rng.normal(1.0, 1, (120, 2))])
    found = advise(X, np.repeat([0, 1], [1800, 120]), LogisticRegression(), minutes=None)
    assert found.winner != NOTHING
    assert "Gains are in F1 over doing nothing" in found.verdict
    rows = {row["remedy"]: row for row in found.table}
    assert rows[found.winner]["low"] > 0


class CoarseTree(DecisionTreeClassifier):
    """A tree that decides by the majority of its leaves: no threshold helps it, more rows of the rare class do."""

    def predict_proba(self, X, check_input=True):
        return np.round(super().predict_proba(X, check_input))


@pytest.mark.parametrize("ours", [(), pytest.param((OURS,), marks=pytest.mark.slow)], ids=["others", "ours too"])
def test_over_sampling_wins_where_it_should(ours, monkeypatch):
    """Rare rows fill a disc in a sea of common ones; leaves of fewer than 40 rows are too coarse for 30 of them."""
    keep_remedies(monkeypatch, NOTHING, WEIGHTS, THRESHOLD, NOISE, "SMOTE", *ours)
    rng = np.random.default_rng(0)
    common = rng.uniform(-3, 3, (2000, 2))
    common = common[np.linalg.norm(common, axis=1) > 1]
    angle, radius = rng.uniform(0, 2 * np.pi, 30), 0.8 * np.sqrt(rng.uniform(size=30))
    rare = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    X, y = np.concatenate([common, rare]), np.repeat([0, 1], [len(common), 30])
    found = advise(X, y, CoarseTree(min_samples_leaf=40, random_state=0), minutes=None)
    assert found.verdict.startswith("Over-sample with")
    assert "SMOTE" in found.winner or found.winner in (OURS, NOISE)


def calls(rng, y, recall, false_share):
    """Calls with a given recall and share of common rows called rare."""
    return (rng.random(len(y)) < np.where(y == 1, recall, false_share)).astype(float)


def advice_on_calls(rng, n, rates):
    """Winner and verdict where each remedy calls n rows, 15 in a hundred rare, with its own rates."""
    y = (np.arange(n) < 0.15 * n).astype(int)
    return verdict_on(y, {name: calls(rng, y, *rate) for name, rate in rates.items()})


def test_verdict_needs_more_than_the_best_of_many():
    """The largest of several equal remedies is above zero by chance; its widened interval is not."""
    rng = np.random.default_rng(0)
    equal = dict.fromkeys(CODE, (0.6, 0.05))
    wrong = np.mean([advice_on_calls(rng, 400, equal)[0] != NOTHING for _ in range(300)])
    assert wrong < 0.05 + 2 * np.sqrt(0.05 * 0.95 / 300)
    y, groups, plain = (np.arange(400) < 60).astype(int), np.arange(400), 0
    for _ in range(300):
        first, *others = (calls(rng, y, 0.6, 0.05) for _ in CODE)
        plain += max(f1_gain(y, other, first, groups).low for other in others) > 0
    assert plain / 300 > 0.1  # the control: uncorrected intervals of the best remedy are fooled, 1 in 40 is promised


def test_a_verdict_has_the_gains_of_the_table_and_no_others():
    """Whatever the verdict: gains over the best other remedy beside gains over nothing cannot be compared by eye."""
    rng, kinds = np.random.default_rng(0), set()
    plain = dict.fromkeys(CODE, (0.5, 0.1))
    for n, rates in (
        (2000, plain | {"SMOTE": (0.9, 0.02)}),
        (2000, plain | {THRESHOLD: (0.9, 0.02), "SMOTE": (0.8, 0.02)}),
        (2000, dict.fromkeys(CODE, (0.9, 0.0)) | {"SMOTE": (0.9, 0.001)}),
        (200, plain | {"SMOTE": (0.6, 0.1)}),
        (200, plain | {NOTHING: (0.0, 0.0)}),
        (200, dict.fromkeys(CODE, (0.1, 0.1))),
    ):
        y = (np.arange(n) < 0.15 * n).astype(int)
        shared = rng.random(n)  # remedies that call nearly the same rows differ by little
        called = {k: (shared < np.where(y == 1, *rate)).astype(float) for k, rate in rates.items()}
        measured = {name: measured_f1(y, own) for name, own in called.items()}
        _, verdict = decide(METRICS["f1"], y, measured, np.arange(n))
        in_table = [words(*gain_over_nothing(METRICS["f1"], y, measured, np.arange(n), name)) for name in measured]
        gains = re.findall(r"[+-]\d\.\d{3} \[.*?\]", verdict)
        assert set(gains) <= set(in_table)
        assert ("Gains are in F1 over doing nothing" in verdict) == bool(gains)
        kinds.add((verdict.split(":")[0].split(" with ")[0], bool(gains)))
    assert len(kinds) == 5  # over-sample, another remedy, no difference, undecided with gains and without


def test_gain_in_f1_is_covered_by_its_interval():
    """Two independent rules with known rates r and f; their F1 is 2 r p / (r p + f (1 - p) + p) up to order 1 / n."""
    rng = np.random.default_rng(0)
    y, inside, plain = (np.arange(600) < 90).astype(int), [], []
    rates, p = ((0.7, 0.1), (0.4, 0.02)), 0.15
    truth = np.diff([2 * r * p / (r * p + f * (1 - p) + p) for r, f in rates[::-1]])[0]
    for _ in range(400):
        drawn = [calls(rng, y, *rate) for rate in rates]
        found = f1_gain(y, *drawn, np.arange(600))
        inside.append(found.low < truth < found.high)
        twice = f1_gain(*(np.tile(v, 2) for v in (y, *drawn)), np.arange(1200))
        plain.append(twice.low < truth < twice.high)
    assert abs(np.mean(inside) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 400)
    assert np.mean(plain) < 0.9  # the control: rows that are counted twice as if they were independent
    groups = np.tile(np.arange(600), 2)
    assert f1_gain(*(np.tile(v, 2) for v in (y, *drawn)), groups).low == pytest.approx(found.low)


@pytest.mark.parametrize("decimals", [1, 12])
@pytest.mark.parametrize(
    ("measured", "reference"),
    [
        (measured_average_precision, average_precision_score),
        (measured_f1, lambda y, value, sample_weight: f1_score(y, value > 0.5, sample_weight=sample_weight)),
        (lambda y, value: measured_mean((y - value) ** 2), brier_score_loss),
    ],
    ids=["average precision", "F1", "Brier"],
)
def test_measures_and_their_derivatives_are_those_of_scikit_learn(measured, reference, decimals):
    """By finite differences of its weighted measures, with many equal values and with none."""
    rng = np.random.default_rng(0)
    y = (rng.random(50) < 0.3).astype(int)
    value = (rng.random(50) * 0.7 + 0.3 * y).round(decimals)
    given = (value > 0.5).astype(float) if measured is measured_f1 else value
    found = measured(y, given)
    assert found.value == pytest.approx(reference(y, value, sample_weight=np.ones(50)))
    numeric = [(reference(y, value, sample_weight=1 + 1e-5 * own) - reference(y, value, sample_weight=1 - 1e-5 * own))
               / 2e-5 for own in np.eye(50)]  # fmt: skip
    np.testing.assert_allclose(found.by_row, numeric, atol=1e-8)


def test_gain_in_average_precision_is_covered_by_its_interval():
    """Two rankings of known quality; the truth is their difference on very many rows."""
    rng = np.random.default_rng(0)

    def gain(n):
        y = (np.arange(n) < 0.15 * n).astype(int)
        signal = rng.normal(size=n) + 1.5 * y
        first, second = (signal + noise * rng.normal(size=n) for noise in (0.5, 1.5))
        return gain_between(
            measured_average_precision(y, first), measured_average_precision(y, second), y, np.arange(n)
        )

    truth = gain(400_000).mean
    found = [gain(600) for _ in range(400)]
    inside = np.mean([own.low < truth < own.high for own in found])
    assert abs(inside - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 400)


def test_the_metric_decides(monkeypatch):
    """A threshold helps decisions and leaves ranking; weights spoil probabilities, so for them nothing is best."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (1800, 2)), rng.normal(1.0, 1, (120, 2))])
    y = np.repeat(["a", "b"], [1800, 120])
    keep_remedies(monkeypatch, NOTHING, WEIGHTS, THRESHOLD, "SMOTE")
    found = {metric: advise(X, y, LogisticRegression(), metric=metric, minutes=None) for metric in METRICS}
    assert {metric: own.winner == NOTHING for metric, own in found.items()} == {
        "f1": False, "average_precision": True, "brier": True, "log_loss": True,
    }  # fmt: skip
    for metric, own in found.items():
        rows = {row["remedy"]: row for row in own.table}
        assert METRICS[metric].label in str(own)
        assert (rows[WEIGHTS]["high"] < 0) == (metric in ("brier", "log_loss"))
        if metric != "f1":
            assert rows[THRESHOLD]["gain"] == 0


def test_one_class_against_all_others(monkeypatch):
    seen = []
    keep_remedies(monkeypatch, NOTHING, WEIGHTS, "SMOTE")
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 1, (n, 2)) for m, n in ((0, 300), (3, 100), (-3, 40))])
    y = np.repeat(["big", "middle", "small"], [300, 100, 40])
    for positive, expected in ((None, "small"), ("middle", "middle")):
        found = advise(X, y, LogisticRegression(), positive=positive, minutes=None, progress=lambda *n: seen.append(n))
        assert found.verdict.startswith(f"Class {expected} against all others.")
        names = {"y": pd.Series(y)}
        exec(found.code, names)
        assert names["y"].sum() == (y == expected).sum()
        assert names["model"].fit(X, names["y"]).score(X, y == expected) > 0.85
    assert seen == [(done, 15) for _ in range(2) for done in range(1, 16)]


def test_a_large_gain_on_few_rows_is_found():
    """F1 rises from .41 to .66 at 400 rows by a threshold that calls the same rows rare, and more."""
    rng, y, winners = np.random.default_rng(0), (np.arange(400) < 60).astype(int), []
    for _ in range(60):
        called = {name: calls(rng, y, 0.3, 0.02) for name in CODE if name != TEACHING}  # one more widens intervals
        called[THRESHOLD] = np.maximum(called[NOTHING], calls(rng, y, 0.65, 0.08))
        winners.append(verdict_on(y, called)[0])
    assert np.mean([winner == THRESHOLD for winner in winners]) > 0.6


def test_a_remedy_that_finds_no_rare_row_is_never_advised():
    rng = np.random.default_rng(0)
    for rates in (
        dict.fromkeys(CODE, (0.0, 0.0)),
        dict.fromkeys(CODE, (0.5, 0.5)) | {NOTHING: (0.0, 0.0)},
        dict.fromkeys(CODE, (0.8, 0.05)) | {NOTHING: (0.0, 0.0)},
    ):
        winner, verdict = advice_on_calls(rng, 200, rates)
        assert winner is None or rates[winner] > (0, 0)
        assert ("none is advised" in verdict) == (winner is None)


def test_time_decides_only_how_many_repetitions_run(monkeypatch):
    """The rows and the first repetition are the same at any speed, and one remedy is named everywhere."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (900, 2)), rng.normal(1.0, 1, (90, 2))])
    y = np.repeat([0, 1], [900, 90])
    keep_remedies(monkeypatch, NOTHING, WEIGHTS, "SMOTE")
    monkeypatch.setattr(advice, "ROWS", (600, 100))

    def at_speed(seconds):
        clock = types.SimpleNamespace(monotonic=itertools.count(0, seconds).__next__)
        monkeypatch.setattr(advice, "time", clock)
        return advise(X, y, LogisticRegression(), minutes=1, random_state=3)

    one, two = at_speed(1000), at_speed(25)
    assert (one.n_repetitions, two.n_repetitions) == (1, 2)
    assert one.n_rows == two.n_rows == 700
    for slow, fast in zip(one.table, two.table, strict=True):
        assert slow["values"]["f1"] == fast["values"]["f1"][:5]
    for found in (one, two):
        assert found.winner in found.verdict
        assert [line.split("  ")[0] for line in str(found).splitlines() if line.startswith("> ")] == [
            f"> {found.winner}"
        ]
        assert found.code == code_for(found.winner, LogisticRegression(), np.array([0, 1]), np.array([0, 1]), 100)
        assert f"{found.n_repetitions} repetition" in str(found)


@pytest.mark.parametrize("winner", list(CODE))
@pytest.mark.parametrize("labels", [np.array(["no", "yes"]), pytest.param(np.array([1, 0]), marks=pytest.mark.slow)])
@pytest.mark.parametrize("estimator", [LogisticRegression(C=0.5), RandomForestClassifier(5, random_state=0)])
def test_code_runs_as_given(winner, labels, estimator):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), np.repeat([0, 1], [100, 20])
    names = {}
    exec(code_for(winner, estimator, y, labels, 5), names)
    model = names["model"]
    if winner not in (OURS, OURS_TUNED, OUR_CLASSIFIER, TEACHING):
        assert model.fit(X, labels[y]).predict_proba(X).shape == (120, 2)


def test_code_for_estimators_that_cannot_be_written_names_them():
    y = np.repeat([0, 1], [90, 10])
    labels = np.array([0, 1])
    assert "XGBClassifier(" in code_for(NOTHING, boosting(0), y, labels, 10)
    assert "scale_pos_weight=9.0" in code_for("class weights", boosting(0), y, labels, 10)
    for given in (np.array(["no", "yes"]), labels[::-1]):  # boosting takes 0 and 1 alone
        names = {"y": given[y]}
        exec(code_for(WEIGHTS, boosting(0), y, given, 10), names)
        assert names["y"].tolist() == y.tolist()
        assert names["model"].scale_pos_weight == 9
        names["model"].fit(np.arange(100.0)[:, None], names["y"])
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    assert code_for(NOTHING, pipeline, y, labels, 10) == "model = estimator"
    unwritten = RandomForestClassifier(5, random_state=np.random.RandomState(0))
    names = {"estimator": unwritten}
    exec(code_for(WEIGHTS, unwritten, y, labels, 10), names)
    assert names["model"].class_weight == "balanced"
    names = {"estimator": pipeline}
    exec(code_for(THRESHOLD, CoarseTree(), y, labels, 10), names)


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(C=0.5, class_weight={0: 1.0, 1: 3.0}),
        RandomForestClassifier(5, max_features=None, random_state=0),
        BaggingClassifier(LogisticRegression(C=1e-3), 3),
        CalibratedClassifierCV(BaggingClassifier(DecisionTreeClassifier(max_depth=2))),
        boosting(0),
    ],
)
def test_code_makes_the_same_estimator(estimator):
    names = {}
    exec(code_for(NOTHING, estimator, np.array([0, 1]), np.array([0, 1]), 10), names)
    made, given = names["model"], estimator
    assert type(made) is type(given)
    assert repr(made.get_params()) == repr(given.get_params())


def test_no_text_of_a_parameter_is_run(tmp_path):
    class Parameter:
        def __repr__(self):
            return f"open({str(tmp_path / 'made')!r}, 'w')"

    for estimator in (LogisticRegression(C=Parameter()), BaggingClassifier(LogisticRegression(C=Parameter()))):
        code = code_for(NOTHING, estimator, np.array([0, 1]), np.array([0, 1]), 10)
        assert code == "model = estimator"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "value", [float("nan"), np.float64(2.0), np.arange(3), print, LogisticRegression, {1, 2, print}]
)
def test_values_that_are_not_literals_are_not_written(value):
    assert written(value) is None
    assert written(LogisticRegression(C=value)) is None


class Picky(LogisticRegression):
    def __init__(self, C=-1.0):
        if C < 0:
            raise ValueError("no penalty was given")
        super().__init__(C=C)


class Named:
    def __repr__(self):
        return "1.0"  # the default of C


@pytest.mark.parametrize("estimator", [Picky(2.0), LogisticRegression(C=Named())])
def test_estimators_that_cannot_be_made_again_are_not_written(estimator):
    assert written(estimator) is None


def test_advice_imports_no_study():
    code = (
        "import sys, scorefield.evaluation.advice; "
        "found = [name for name in sys.modules if name.startswith('scorefield.studies')]; assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_rare_rows_survive_thinning_and_equal_rows_stay_together(monkeypatch):
    keep_remedies(monkeypatch, NOTHING, THRESHOLD, "SMOTE")
    y = (np.arange(100_000) < 50).astype(int)
    kept = _thinned(y, 500, np.random.default_rng(0))
    assert len(kept) == 500
    assert y[kept].sum() == 50
    rng = np.random.default_rng(0)
    X = rng.normal(size=(110, 2))
    X[102:110] = X[101]  # eight of ten rare rows are equal
    with pytest.raises(ValueError, match="distinct rows"):
        advise(X, np.repeat([0, 1], [100, 10]), LogisticRegression(), minutes=None)
    X = np.concatenate([rng.normal(size=(100, 2)), np.repeat(rng.normal(size=(7, 2)), 2, axis=0)])
    assert advise(X, np.repeat([0, 1], [100, 14]), LogisticRegression(), minutes=None).n_splits == 5


def test_inner_folds_keep_equal_rows_together():
    y = np.tile(np.repeat([0, 1], [60, 9]), 3)
    groups = np.tile(np.arange(69), 3)
    for kept, held in _splits(y, groups, 0, 3):
        assert not set(groups[kept]) & set(groups[held])
        assert 0 < y[held].sum() < len(held)


def test_undecided_is_not_called_no_difference():
    rng = np.random.default_rng(0)
    equal = dict.fromkeys(CODE, (0.6, 0.05))
    winner, few = advice_on_calls(rng, 200, equal)
    assert winner == NOTHING
    assert few.startswith("Undecided: do nothing for now")
    assert "More rows or minutes would tell" in few
    winner, many = advice_on_calls(rng, 40_000, equal)
    assert winner == NOTHING
    assert many.startswith("No difference: do nothing")


def test_large_tables_are_thinned_and_pages_written(tmp_path, monkeypatch):
    keep_remedies(monkeypatch, NOTHING, WEIGHTS, THRESHOLD, "SMOTE")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    y = (X[:, 0] + rng.normal(size=len(X)) > 2.3).astype(int)
    found = advise(X, y, LogisticRegression(), minutes=None)
    assert found.n_rows < 20_000
    assert "of 20000 rows" in found.verdict
    found.write_page(tmp_path / "advice.html")
    text = (tmp_path / "advice.html").read_text()
    assert "data:image/png" in text
    assert THRESHOLD in text


def test_bad_tables():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="two or more classes"):
        advise(X, np.ones(30))
    with pytest.raises(ValueError, match="got continuous values"):
        advise(X, X[:, 0])
    with pytest.raises(ValueError, match=r"positive to be one of \[0, 1\], got 'yes'"):
        advise(X, np.repeat([0, 1], 15), positive="yes")
    with pytest.raises(ValueError, match="metric to be one of"):
        advise(X, np.repeat([0, 1], 15), metric="accuracy")
    with pytest.raises(ValueError, match="at least 5 distinct rows"):
        advise(X, np.repeat([0, 1], [27, 3]))
    with pytest.raises(ValueError, match="inf"):
        advise(np.where(X > 1, np.inf, X), np.repeat([0, 1], [20, 10]))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        advise(np.where(X > 1, np.nan, X), np.repeat([0, 1], [20, 9]))


def orders(n=150, seed=0):
    """An identifier, numbers with gaps, categories with gaps, dates; rare rows are cheap and blue."""
    rng = np.random.default_rng(seed)
    rare = np.arange(n) < n // 5
    frame = pd.DataFrame(
        {
            "id": [f"o{i:05d}" for i in range(n)],
            "price": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n) + 4 * ~rare),
            "colour": pd.Series(np.where(rare, "blue", rng.choice(["red", "blue"], n))).where(rng.random(n) > 0.1),
            "shop": rng.choice(["a", "b", "c"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
        }
    )
    return frame, np.where(rare, "yes", "no")


FOREST, LOGISTIC = RandomForestClassifier(5, random_state=0), LogisticRegression(C=0.5)


@pytest.mark.parametrize(
    ("winner", "estimator"),
    [
        *itertools.product([name for name in CODE if name not in (OURS_TUNED, OUR_CLASSIFIER, TEACHING)], [FOREST]),
        ("SMOTE", LOGISTIC),
        *(
            pytest.param(name, LOGISTIC, marks=pytest.mark.slow)
            for name in CODE
            if name not in (OURS_TUNED, OUR_CLASSIFIER, TEACHING, "SMOTE")
        ),
        pytest.param(OUR_CLASSIFIER, FOREST, marks=pytest.mark.slow),
        (TEACHING, FOREST),
        pytest.param(OURS_TUNED, FOREST, marks=pytest.mark.slow),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_code_runs_on_a_mixed_table_as_printed(winner, estimator, monkeypatch):
    monkeypatch.setattr("scorefield.models.fitting.GENERATOR_STEPS", 10)
    X, y = orders()
    preparation = prepare(estimator, X, None, fixed=False)
    code = code_for(winner, estimator, (y == "yes").astype(int), np.array(["no", "yes"]), 20, preparation)
    names = {}
    exec(code, names)
    proba = names["model"].fit(X, y).predict_proba(X)
    assert proba.shape == (150, 2)
    assert proba[:30, 1].mean() > proba[30:, 1].mean() + 0.3
    assert code.count("import make_pipeline") == (winner != OUR_CLASSIFIER)


def test_the_printed_model_is_the_one_that_was_compared():
    X, y = orders()
    rare = (y == "yes").astype(int)
    for estimator in (FOREST, LOGISTIC, boosting(0)):
        teacher, prepared = (lambda: None), prepare(estimator, X, None, fixed=False)  # None is the default teacher
        made = advice._remedies(estimator, rare, 3, 20, None, [], teacher, prepared)
        made |= {OUR_CLASSIFIER: ScoreClassifier(), OURS: made[OURS](), TEACHING: made[TEACHING]()}
        for name in (NOTHING, WEIGHTS, OUR_CLASSIFIER, TEACHING, NOISE, "SMOTE", OURS):
            names = {"y": y}
            code = code_for(name, estimator, rare, ["no", "yes"], 20, prepare(estimator, X, None, fixed=False))
            exec(code, names)
            assert repr(names["model"]) == repr(made[name])


def test_advice_on_a_mixed_table(monkeypatch):
    keep = (NOTHING, "SMOTE", NOISE)
    keep_remedies(monkeypatch, *keep)
    X, y = orders(400)
    found = advise(X, y, LOGISTIC, minutes=None)
    rows = {row["remedy"]: row for row in found.table}
    assert all(rows[name]["average_precision"] > 0.85 for name in keep)  # .2 by chance
    blind = advise(X[["day", "shop"]], y, LOGISTIC, minutes=None)  # the control: columns that say nothing
    assert max(row["average_precision"] for row in blind.table) < 0.4
    names = {}
    exec(found.code, names)
    assert names["model"].fit(X, y).score(X, y) > 0.85
    twice = pd.concat([X.head(80), X.head(80).assign(id="again")])  # equal but for the identifier
    with pytest.raises(ValueError, match="at least 5 distinct rows of each class, got 3"):
        advise(twice, np.where(twice.index.to_numpy() < 3, "yes", "no"), LOGISTIC, minutes=None)


def test_models_that_need_more_time_are_left_out_of_a_mixed_table_and_named(monkeypatch):
    X, y = orders(1200)
    found = advise(X, y, LOGISTIC, minutes=0.01)
    assert {row["remedy"] for row in found.table} == {NOTHING, WEIGHTS, THRESHOLD, NOISE, "SMOTE"}
    assert found.verdict.endswith(
        "ScoreClassifier, DistilledClassifier and score over-sampling need 2 minutes on a mixed table and were left "
        "out.)"
    )
    assert found.n_rows == 1002

    class Stop(Exception):
        pass

    def run(parts, outcomes, estimator, ratios, preparation, left_out):
        raise Stop(left_out)

    monkeypatch.setattr(advice._Parts, "run", run)
    for minutes in (None, 2):
        with pytest.raises(Stop, match=r"\(\)"):
            advise(X, y, LOGISTIC, minutes=minutes)


def test_without_minutes_no_classifier_of_ours_is_trained(monkeypatch):
    keep_remedies(monkeypatch, NOTHING, WEIGHTS, "SMOTE", OUR_CLASSIFIER, TEACHING, OURS)
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (80, 2)), rng.normal(2, 1, (20, 2))])
    found = advise(X, np.repeat([0, 1], [80, 20]), LogisticRegression(), minutes=0)
    assert [row["remedy"] for row in found.table] == [NOTHING, WEIGHTS, "SMOTE"]
    assert found.verdict.endswith("score over-sampling need more than 0 minutes and were left out.)")


@pytest.mark.parametrize(
    "container", ["polars", *(pytest.param(name, marks=pytest.mark.slow) for name in ("pyarrow", "numpy"))]
)
def test_advice_takes_other_containers(container, monkeypatch):
    keep_remedies(monkeypatch, NOTHING, THRESHOLD, "SMOTE")
    X, y = orders(100)
    expected = advise(X, y, LOGISTIC, minutes=None)
    pl = pytest.importorskip("polars")
    table = X.to_numpy(object) if container == "numpy" else pl.from_pandas(X)
    if container == "pyarrow":
        try:
            _safe_indexing(table.to_arrow(), [0, 1])
        except TypeError:
            pytest.skip("this version of scikit-learn cannot split pyarrow tables")
    found = advise(table.to_arrow() if container == "pyarrow" else table, y, LOGISTIC, minutes=None)
    assert found.verdict == expected.verdict


def test_preparation_follows_the_learner_and_the_columns():
    X, _ = orders()
    assert [step.form for step in prepare(FOREST, X, None, fixed=True).learner] == ["codes"]
    assert [step.form for step in prepare(LOGISTIC, X, None, fixed=True).learner] == ["one-hot"]
    assert prepare(ScoreClassifier(), X, None, fixed=True).learner == ()  # it takes the table itself
    assert prepare(FOREST, X, None, fixed=True).interpolation is SMOTENC
    assert prepare(FOREST, X[["price"]], None, fixed=True).interpolation is SMOTE
    assert prepare(FOREST, X[["shop", "colour"]], None, fixed=True).interpolation is SMOTEN
    assert "ScoreOverSampler(columns={'shop': 'identifier'})" in code_for(
        OURS, FOREST, np.array([0, 1]), [0, 1], 10, prepare(FOREST, X, {"shop": "identifier"}, fixed=False)
    )


def test_a_key_of_repeated_rows_in_a_sorted_table_tells_nothing():
    """Ids of 1 to 300 with 20 repeated rows: measures are those without the column, which would give nearly all."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": np.arange(1, 301), "x": rng.normal(size=300), "level": rng.choice(list("abc"), 300)})
    y = np.repeat([0, 1], [240, 60])
    again = rng.permutation(300)[:20]
    X, y = pd.concat([X, X.iloc[again]], ignore_index=True), np.concatenate([y, y[again]])
    f1 = {}
    for name, table, columns in (("with", X, None), ("without", X.drop(columns="id"), None),
                                 ("number", X, {"id": "whole number"})):  # fmt: skip
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = advise(table, y, DecisionTreeClassifier(random_state=0), minutes=0.01, columns=columns)
        f1[name] = next(row["f1"] for row in found.table if row["remedy"] == "nothing")
        said = [str(warning.message) for warning in caught if "order" in str(warning.message)]
        assert ("'id'" in "".join(said)) == (name != "without")
    assert f1["with"] == f1["without"] < 0.5 < 0.9 < f1["number"]


def test_parts_read_dates_as_the_whole_table(monkeypatch):
    """Only one cell, or only the user, tells whether the day or the month is first."""
    keep_remedies(monkeypatch, NOTHING, "SMOTE")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=100), "day": [f"0{1 + i % 9}/0{1 + i % 7}/2024" for i in range(100)]})
    y = np.repeat([0, 1], [70, 30])
    with pytest.raises(ValueError, match="'date:dmy' or 'date:mdy' decides"):
        advise(X, y, LogisticRegression(), minutes=0)
    assert advise(X, y, LogisticRegression(), minutes=0, columns={"day": "date:mdy"}).n_splits == 5
    X.loc[0, "day"] = "13/01/2024"
    assert advise(X, y, LogisticRegression(), minutes=0).n_splits == 5
    kinds = prepare(LogisticRegression(), X, None, fixed=True).columns
    assert kinds == {"day": "date:dmy"}  # for the models that read parts of the table themselves
    assert prepare(LogisticRegression(), X, None, fixed=False).columns is None  # as the code for users has it


def visits():
    """Sixty customers of five visits; a customer's columns tell the customer, and nothing else tells the label."""
    rng = np.random.default_rng(0)
    customers = np.repeat(np.arange(60), 5)
    X = rng.normal(size=(60, 2))[customers] + 1e-6 * rng.normal(size=(300, 2))
    return X, (rng.permutation(np.arange(60) % 3 == 0)[customers]).astype(int), np.array([f"c{c}" for c in customers])


def test_groups_share_a_fold(monkeypatch):
    """A tree that knows a customer from other visits looks faultless where they are on both sides."""
    keep_remedies(monkeypatch, NOTHING, WEIGHTS, THRESHOLD, "SMOTE")
    folds, original = [], advice.stratified_folds

    def watched(y, groups, n_folds, seed):
        splits = original(y, groups, n_folds, seed)
        folds.extend((groups[kept], groups[held]) for kept, held in splits)
        return splits

    monkeypatch.setattr(advice, "stratified_folds", watched)
    X, y, customers = visits()
    tree = DecisionTreeClassifier(random_state=0)
    torn = advise(X, y, tree, minutes=0)
    folds.clear()
    found = advise(X, y, tree, minutes=0, groups=customers)
    assert len(folds) == 5 + 5 * 3  # of the test parts, and of the thresholds within each training part
    assert not any(set(kept) & set(held) for kept, held in folds)
    assert len(set(folds[0][0]) | set(folds[0][1])) == 60
    assert torn.table[0]["f1"] > 0.95
    assert found.table[0]["f1"] < 0.6
    widths = [advice.table[1]["high"] - advice.table[1]["low"] for advice in (torn, found)]
    assert widths[1] > widths[0]  # five visits count as one


def test_the_teacher_keeps_groups_together(monkeypatch):
    given = []

    class Light(ScoreClassifier):
        def __init__(self, columns=None, random_state=None):
            super().__init__(n_members=1, hidden=(8,), max_steps=2, columns=columns, random_state=random_state)

        def fit(self, X, y, groups=None):
            given.append(None if groups is None else len(np.unique(groups)))
            return super().fit(X, y, groups=groups)

    monkeypatch.setattr(advice, "ScoreClassifier", Light)
    keep_remedies(monkeypatch, NOTHING, OUR_CLASSIFIER, "SMOTE")
    X, y, customers = visits()
    advise(X, y, LogisticRegression(), minutes=None, groups=customers)
    assert given == [48] * 5
    with pytest.raises(ValueError, match="at least 5 groups with rows of each class, got 4"):
        advise(X, y, LogisticRegression(), minutes=0, groups=np.arange(300) // 75)


@pytest.mark.parametrize("winner", [THRESHOLD, OURS_TUNED])
def test_the_code_keeps_groups_together(winner):
    X, y, customers = visits()
    code = code_for(winner, LogisticRegression(), y, (0, 1), 20, grouped=True)
    assert "cv=list(StratifiedGroupKFold(3).split(X, y, groups))" in code
    names = {"X": X, "y": y, "groups": customers}
    exec(code, names)
    assert len(names["model"].cv) == 3
    assert "StratifiedGroupKFold" not in code_for(winner, LogisticRegression(), y, (0, 1), 20)
