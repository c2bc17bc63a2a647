"""MixedEncoder on tables whose encoding can be written down."""

import numpy as np
import pandas as pd
import pytest

from scorefield import MixedEncoder

TABLE = pd.DataFrame(
    {
        "id": [f"r{i}" for i in range(40)],
        "colour": ["red", "blue", None, "red"] * 10,
        "size": pd.Categorical(["s", "m", "l", "m"] * 10, categories=["s", "m", "l"], ordered=True),
        "fee": [0.0 if i % 2 else 1.25 + i for i in range(40)],
        "paid": [True, False] * 20,
        "day": pd.date_range("2024-01-01", periods=40),
        "age": [np.nan if i % 10 == 3 else 20.5 + i for i in range(40)],
        "same": ["x"] * 40,
    }
)


def test_codes_are_values_and_positions_of_levels():
    encoder = MixedEncoder().fit(TABLE)
    found = pd.DataFrame(encoder.transform(TABLE), columns=encoder.get_feature_names_out())
    assert list(found) == ["size", "fee", "paid", "day", "age", "colour"]
    np.testing.assert_array_equal(found["size"], TABLE["size"].cat.codes)
    np.testing.assert_array_equal(found["fee"], TABLE["fee"])  # spikes are numbers again
    np.testing.assert_array_equal(found["paid"], TABLE["paid"])
    np.testing.assert_array_equal(np.diff(found["day"]), 86_400.0)
    np.testing.assert_array_equal(found["age"], TABLE["age"])
    np.testing.assert_array_equal(found["colour"][:4], [1, 0, np.nan, 1])
    assert encoder.categories_ == [5]


def test_filled_and_one_hot_tables_are_complete():
    filled = MixedEncoder("filled").fit_transform(TABLE)
    np.testing.assert_array_equal(filled[3, 4], TABLE["age"].mean())
    np.testing.assert_array_equal(filled[:4, 5], [1, 0, 2, 1])
    encoder = MixedEncoder("one-hot").fit(TABLE)
    found = pd.DataFrame(encoder.transform(TABLE), columns=encoder.get_feature_names_out())
    assert list(found)[5:] == ["age_missing", "colour_blue", "colour_red", "colour_missing"]
    np.testing.assert_array_equal(found["age_missing"], TABLE["age"].isna())
    np.testing.assert_allclose(found[["size", "fee", "paid", "day", "age"]].mean(), 0, atol=1e-12)
    np.testing.assert_allclose(found[["size", "fee", "paid", "day", "age"]].std(ddof=0), 1)
    np.testing.assert_array_equal(found[["colour_blue", "colour_red", "colour_missing"]].sum(axis=1), 1)
    np.testing.assert_array_equal(found["colour_red"], TABLE["colour"] == "red")
    odd = encoder.transform(TABLE.head(1).assign(colour="green", age=np.nan))
    np.testing.assert_array_equal(odd[0, 5:], [1, 0, 0, 1])  # an unseen level is a gap


def test_declared_columns_keep_their_places():
    """Cross-validation must not move a column because it is constant in one part."""
    kinds = {"colour": "category", "size": "ordered", "fee": "number", "day": "date", "age": "number", "paid": "flag"}
    parts = [TABLE, TABLE[::4]]  # in the second, colour and size are constant
    names = [MixedEncoder(columns=kinds).fit(part).get_feature_names_out().tolist() for part in parts]
    assert names[0] == names[1]
    assert MixedEncoder().fit(TABLE[::4]).get_feature_names_out().tolist() != names[0]  # the control


def test_postcodes_may_be_categories():
    X = np.column_stack([np.tile([10115, 80331], 10), np.arange(20.0) / 7])
    encoder = MixedEncoder("one-hot", columns={0: "category"}).fit(X)
    np.testing.assert_array_equal(encoder.transform(X)[:2, 1:], [[1, 0], [0, 1]])
    assert encoder.get_feature_names_out().tolist() == ["x1", "x0_10115", "x0_80331"]
    with pytest.raises(ValueError, match="at least one column"):
        MixedEncoder().fit(TABLE[["id", "same"]])


def test_names_of_columns_are_all_different():
    many = [f"s{i // 40}" if i < 200 else f"rare{i}" for i in range(240)]
    table = pd.DataFrame(
        {
            "a": ["missing", "b_c", None] * 80,
            "a_b": ["c", "d", "e"] * 80,
            "shop": pd.Series(many),
        }
    )
    kinds = dict.fromkeys(table, "category")
    encoder = MixedEncoder("one-hot", columns=kinds).fit(table)
    names = encoder.get_feature_names_out().tolist()
    assert names[:6] == ["a_b_c", "a_missing", "a_missing_", "a_b_c_", "a_b_d", "a_b_e"]
    assert names[6:] == ["shop_s0", "shop_s1", "shop_s2", "shop_s3", "shop_s4", "shop_other"]
    found = pd.DataFrame(encoder.transform(table), columns=names)
    np.testing.assert_array_equal(found["a_missing"], table["a"] == "missing")
    np.testing.assert_array_equal(found["a_missing_"], table["a"].isna())
    np.testing.assert_array_equal(found["shop_other"], table["shop"].str.startswith("rare"))
