"""Every estimator on tables of random kinds, gaps, dtypes and odd names: nothing fails, and every cell is possible."""

import numpy as np
import pandas as pd
import pytest
from imblearn.pipeline import make_pipeline
from sklearn.ensemble import HistGradientBoostingClassifier

from scorefield import (
    MixedEncoder,
    PriorCorrectedClassifier,
    ScoreClassifier,
    ScoreDensity,
    ScoreFeatures,
    ScoreImputer,
    ScoreOverSampler,
)

LIGHT = {"hidden": (8, 8), "max_steps": 2}
NAMES = ["a", "", " ", "a b", "$x$", "é", "0", "Zwölf;", 'say "hi"', "a,b", "None", "nan"]
N = 60


def column(rng):
    """A column of a random kind, as a pandas Series without gaps."""
    kinds = [
        lambda: pd.Series(rng.normal(size=N) * 10.0 ** rng.integers(-6, 7)),
        lambda: pd.Series(rng.normal(size=N).astype(np.float32)),
        lambda: pd.Series(rng.integers(-100, 100, N), dtype=str(rng.choice(["int8", "int64", "Int16", "Int64"]))),
        lambda: pd.Series(rng.integers(0, 4, N), dtype="Int32"),
        lambda: pd.Series(np.where(rng.random(N) < 0.7, 0.0, rng.lognormal(3, 1, N).round(2))),
        lambda: pd.Series(
            rng.choice(["u", "v", " w", "1"], N), dtype=str(rng.choice(["object", "string", "category"]))
        ),
        lambda: pd.Series(rng.random(N) < 0.3, dtype=str(rng.choice(["bool", "boolean"]))),
        lambda: pd.Series(
            pd.Timestamp("2001-02-03", tz="Europe/Paris") + pd.to_timedelta(rng.integers(0, 9999, N), "h")
        ),
        lambda: pd.Series(pd.to_timedelta(rng.integers(0, 9999, N), "min")),
        lambda: pd.Series([f"id-{i:04d}" for i in rng.permutation(N)]),
        lambda: pd.Series(np.full(N, 7.5)),
    ]
    return kinds[rng.integers(len(kinds))]()


def random_table(seed):
    """A table with at least one column that varies, gaps in some columns, and labels of two classes."""
    rng = np.random.default_rng(seed)
    names = rng.choice(NAMES, 5, replace=False)
    table = {str(name): column(rng) for name in names[1:]} | {str(names[0]): pd.Series(rng.normal(size=N))}
    for name, own in table.items():
        if rng.random() < 0.5 and own.dtype.kind not in "biu":
            table[name] = own.mask(rng.random(N) < 0.2)
    y = np.where(rng.random(N) < 0.3, "rare", "common")
    return pd.DataFrame(table), y


def check_possible(made, table):
    """Cells of a generated table are of the same dtypes, within the range, or levels that were seen."""
    assert list(made.columns) == list(table.columns)
    for name in table:
        own, new = table[name].dropna(), made[name].dropna()
        if own.is_unique and own.dtype == object:
            assert not set(new) & set(own)  # new keys, or blank ones
        elif own.dtype.kind in "fiumM" or str(own.dtype).startswith(("Int", "datetime")):
            if len(new):
                assert own.min() <= new.min()
                assert new.max() <= own.max()
        else:
            assert set(new) <= set(own)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_all_estimators_take_a_random_table(seed):
    table, y = random_table(seed)
    before = table.copy(deep=True)
    density = ScoreDensity(**LIGHT, random_state=0)
    assert np.isfinite(density.fit(table).score_samples(table)).all()
    check_possible(density.sample(20), table)

    model = ScoreClassifier(n_members=2, random_state=0, **LIGHT).fit(table, y)
    np.testing.assert_allclose(model.predict_proba(table).sum(axis=1), 1, atol=1e-6)
    check_possible(model.sample(20, "rare"), table)

    over = ScoreOverSampler(purpose="sharing", density=density, random_state=0)
    more, y_more = over.fit_resample(table, y)
    pd.testing.assert_frame_equal(more[: len(table)], table, check_dtype=False)
    assert np.sum(y_more == "rare") == np.sum(y_more == "common")
    check_possible(more[over.is_synthetic_], table)

    full = ScoreImputer(method="neighbours", random_state=0, **LIGHT).fit_transform(table)
    for name in table:
        known = table[name].notna()
        assert (full[name][known] == table[name][known]).all()

    assert np.isfinite(ScoreFeatures(density).fit(table, y).transform(table)).all()
    boosting = HistGradientBoostingClassifier(max_iter=3)
    corrected = PriorCorrectedClassifier(
        make_pipeline(ScoreOverSampler(purpose="sharing", density=density), MixedEncoder(), boosting)
    )
    assert np.isfinite(corrected.fit(table, y).predict_proba(table)).all()
    pd.testing.assert_frame_equal(table, before)  # nothing is changed in place
