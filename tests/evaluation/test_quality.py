"""compare_tables on tables whose difference is known."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from scorefield import compare_tables, describe_columns
from scorefield.evaluation import quality
from scorefield.evaluation.quality import _two_sample_auc, auc_interval


def test_very_large_values_are_compared(rng):
    """Squares of 1e200 overflow; a column that is scaled by infinity would look the same in every table."""
    real, near, far = (pd.DataFrame(shift + rng.normal(size=(200, 1)), columns=["a"]) for shift in (0, 0, 5))
    assert compare_tables(1e200 * real, 1e200 * near).auc < 0.65
    assert compare_tables(1e200 * real, 1e200 * far).auc > 0.95


def test_copies_are_named_first(rng):
    real = pd.DataFrame(rng.normal(size=(300, 3)))
    for shift in (0.0, 1e-9):  # near copies mislead the forest in the same way
        found = compare_tables(real, real + shift)
        assert not any("cannot tell" in sentence for sentence in found.sentences)
        assert found.sentences[0].startswith("Copies: 100.0%") == (shift == 0)
        assert any("cannot judge generated rows that are copies" in sentence for sentence in found.sentences)
    fresh = compare_tables(real, pd.DataFrame(rng.normal(size=(300, 3))))
    assert any("cannot tell" in sentence for sentence in fresh.sentences)  # the control


def test_rows_of_a_discrete_law_repeat_without_being_copies(rng):
    real, other = (pd.DataFrame(rng.integers(0, 3, size=(300, 3))) for _ in range(2))
    found = compare_tables(real, other)
    assert found.copies > 0.9
    assert found.repeats == pytest.approx(found.copies, abs=0.1)
    assert found.closer == pytest.approx(0.5, abs=0.05)
    assert not found.sentences[0].startswith("Copies")
    # Real rows that repeat now and then, and generated rows that always repeat one.
    mixed = pd.DataFrame(np.concatenate([np.repeat(rng.normal(size=(90, 3)), 2, axis=0), rng.normal(size=(120, 3))]))
    copied = compare_tables(mixed, mixed.sample(300, replace=True, random_state=0))
    assert copied.closer == pytest.approx(0.6 / 2 + 0.4, abs=0.01)  # a tie with six real rows of ten, nearer than four
    assert copied.sentences[0].startswith("Copies: 100.0%")


def test_auc_interval_covers_a_known_auc(rng):
    """N(1, 1) against N(0, 1) has AUC Phi(1 / sqrt 2), also with the ties of rounded values but for their width."""
    truth, inside = norm.cdf(1 / np.sqrt(2)), []
    labels = np.repeat([0, 1], [60, 40])
    for _ in range(1000):
        values = np.round(labels + rng.normal(size=100), 1)
        low, high = auc_interval(values, labels)[1]
        inside.append(low < truth < high)
    assert abs(np.mean(inside) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 1000)
    assert auc_interval(np.zeros(100), labels)[0] == 0.5


def test_equal_laws_are_called_different_one_time_in_twenty(rng, monkeypatch):
    monkeypatch.setattr(quality, "N_TREES", 20)
    labels = np.repeat([0, 1], [40, 40])
    z = []
    for seed in range(60):
        auc, (low, high) = _two_sample_auc(rng.normal(size=(80, 3)), labels, seed)
        z.append((auc - 0.5) / ((high - low) / 2 / 2.09))  # Student's quantile at 19 degrees of freedom
    # The variance of 60 values of unit variance has a standard error of sqrt(2 / 59); of overlapping folds it is 1.9.
    assert np.var(z) < 1 + 3 * np.sqrt(2 / 59)


def orders(rng, n, gaps=0.2):
    """An identifier, a number with gaps, a category that goes with it, a number that is often zero, and a date."""
    kind = rng.choice(["a", "b", "c"], n)
    amount = rng.normal(size=n) + 3 * (kind == "a")
    return pd.DataFrame(
        {
            "id": [f"o{i:05d}" for i in range(n)],
            "amount": np.where(rng.random(n) < gaps, np.nan, amount),
            "kind": pd.Series(kind).where(rng.random(n) > 0.1),
            "fee": np.where(rng.random(n) < 0.6, 0.0, rng.lognormal(size=n)),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
        }
    )


def by_name(found):
    return {column["column"]: column for column in found.columns}


def test_mixed_tables_of_one_law_are_not_told_apart(rng):
    real, other = orders(rng, 400), orders(rng, 400)
    found = compare_tables(real, other.assign(id=None))
    assert found.left_out == ["id"]
    assert found.auc_range[0] <= 0.5
    assert not found.sentences[0].startswith("Copies")
    assert found.closer < 0.6
    noise = 1.63 * np.sqrt(2 / 300)  # of 300 known cells or more; exceeded by one of a hundred equal laws
    assert all(column["distance"] < noise and abs(column["gaps"]) < 0.1 for column in found.columns)
    kinds = {name: column["kind"] for name, column in by_name(found).items()}
    assert kinds == {"amount": "number", "kind": "category", "fee": "spiked number", "day": "date"}
    described = {row["column"]: row["kind"] for row in describe_columns(real).rows}
    assert described == {"id": "identifier", **kinds}
    assert "Left out, as identifiers or free text: 'id'." in found.sentences
    assert any(sentence.startswith("Gradient boosting cannot tell") for sentence in found.sentences)


def test_each_difference_of_mixed_tables_is_found(rng):
    """Levels, gaps, spikes and relations in turn, with closed forms; what is not changed stays level."""
    real, other = orders(rng, 2000), orders(rng, 2000)
    levels = compare_tables(real, other.assign(kind=other["kind"].replace("c", "new")))
    share = (real["kind"] == "c").sum() / real["kind"].notna().sum()
    assert by_name(levels)["kind"]["distance"] == pytest.approx(share, abs=0.05)
    assert by_name(levels)["amount"]["distance"] < 0.06
    gaps = compare_tables(real, orders(rng, 2000, gaps=0.5))
    assert by_name(gaps)["amount"]["gaps"] == pytest.approx(0.3, abs=0.05)
    assert by_name(gaps)["amount"]["distance"] < 0.06
    assert gaps.auc_range[0] > 0.5  # the classifier sees gaps
    spikes = compare_tables(real, other.assign(fee=other["fee"].replace(0.0, 1e-9)))
    assert by_name(spikes)["fee"]["spikes"] == pytest.approx(0.6, abs=0.05)
    shuffled = compare_tables(real, other.assign(amount=rng.permutation(other["amount"])))
    assert shuffled.auc_range[0] > 0.5  # its columns are level, the relation of kind and amount is gone
    assert max(column["distance"] for column in shuffled.columns) < 0.08


def test_copies_of_mixed_rows_are_named(rng):
    real = orders(rng, 300)
    copies = compare_tables(real, real.assign(id=None).sample(300, random_state=0))
    assert copies.copies == 1
    assert copies.sentences[0].startswith("Copies: 100.0%")
    near = compare_tables(real, real.assign(amount=real["amount"] + 1e-6))
    assert near.copies == pytest.approx(real["amount"].isna().mean())  # rows without an amount are the same
    assert near.closer > 0.9


@pytest.mark.parametrize("container", ["numpy", "polars", "pyarrow"])
def test_other_containers_give_the_same_numbers(rng, container):
    tables = [orders(rng, 60).drop(columns="id") for _ in range(2)]
    expected = compare_tables(*tables)
    if container == "numpy":
        found = compare_tables(*(table.astype({"kind": object}).to_numpy(object) for table in tables))
    else:
        pl = pytest.importorskip("polars")
        tables = [pl.from_pandas(table) for table in tables]
        found = compare_tables(*(table.to_arrow() if container == "pyarrow" else table for table in tables))
    assert [c["distance"] for c in found.columns] == pytest.approx([c["distance"] for c in expected.columns])
    assert found.auc == expected.auc


def test_tables_that_cannot_be_compared(rng):
    real = orders(rng, 40)
    with pytest.raises(ValueError, match=r"difference in \['day'\]"):
        compare_tables(real, real.drop(columns="day"))
    with pytest.raises(ValueError, match="not an identifier"):
        compare_tables(real[["id"]], real[["id"]])
    with pytest.raises(ValueError, match="column 'day': expected dates"):
        compare_tables(real, real.assign(day=1.5))
    with pytest.raises(ValueError, match="at least 20 rows"):
        compare_tables(real, real[:10])


def test_correlations_use_the_rows_in_which_both_are_known(rng):
    rows = rng.multivariate_normal([0, 0, 0], 0.5 + 0.5 * np.eye(3), size=200)
    np.testing.assert_allclose(quality.correlations(rows), np.corrcoef(rows.T), atol=1e-12)
    rows[:150, 0], rows[50:100, 1] = np.nan, np.nan
    np.testing.assert_allclose(quality.correlations(rows), pd.DataFrame(rows).corr(), atol=1e-12)


def test_a_column_without_known_cells_is_compared(rng):
    real, other = (pd.DataFrame({"a": rng.normal(size=60), "b": np.nan}) for _ in range(2))
    found = compare_tables(real, other)
    assert [column["distance"] for column in found.columns][1] == 0
    assert found.auc_range[0] < 0.5 < found.auc_range[1]
    other["b"] = 1.0
    assert compare_tables(real, other).columns[1]["gaps"] == -1  # the control
