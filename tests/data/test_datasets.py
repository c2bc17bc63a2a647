"""The simulations' counts and moments; the credit-card loader on whole, broken and foreign files."""

import gzip
import lzma
import os

import numpy as np
import pytest

from scorefield.data import datasets
from scorefield.data.datasets import (
    CREDIT_CARD_COLUMNS,
    GAUSSIANS,
    fetch_creditcard,
    load_penguins,
    make_gaussians,
    make_imbalanced_10d,
)

DATA = os.environ.get("SCOREFIELD_DATA")


def test_penguins_have_the_published_counts():
    penguins = load_penguins()
    assert penguins["species"].value_counts().to_dict() == {"Adelie": 152, "Gentoo": 124, "Chinstrap": 68}
    assert penguins.isna().sum().sort_values().iloc[-5:].tolist() == [2, 2, 2, 2, 11]


@pytest.mark.parametrize("n_features", [1, 2])
def test_gaussians_have_the_papers_moments(n_features):
    n = 20_000
    X, y = make_gaussians(n, n_features, random_state=0)
    for label, (mean, covariance) in enumerate(GAUSSIANS[n_features]):
        rows = X[y == label]
        # Five standard errors; unit variances.
        np.testing.assert_allclose(rows.mean(axis=0), mean, atol=5 / np.sqrt(n))
        np.testing.assert_allclose(np.cov(rows.T).reshape(n_features, -1), covariance, atol=5 * np.sqrt(2 / n))


def test_gaussians_take_counts_and_means():
    X, y = make_gaussians([3, 5, 2], means=np.zeros((3, 4)), random_state=1)
    assert X.shape == (10, 4)
    assert np.bincount(y).tolist() == [3, 5, 2]
    np.testing.assert_array_equal(X, make_gaussians([3, 5, 2], means=np.zeros((3, 4)), random_state=1)[0])
    with pytest.raises(ValueError, match="n_features 1 or 2"):
        make_gaussians(10, 3)
    with pytest.raises(ValueError, match="means of shape"):
        make_gaussians(10, means=[0.0, 1.0])


def test_imbalanced_simulation_is_in_the_papers_range():
    positives = [make_imbalanced_10d(seed)[1].sum() for seed in range(5)]
    assert 150 < np.mean(positives) < 190  # the paper: 170


@pytest.fixture
def small_table(monkeypatch):
    """A table of the right columns with 6 rows, 2 of them frauds; the expected counts are shrunk to it."""
    monkeypatch.setattr(datasets, "CREDIT_CARD_ROWS", 6)
    monkeypatch.setattr(datasets, "CREDIT_CARD_FRAUDS", 2)
    values = np.random.default_rng(0).normal(size=(6, 30)).round(3)
    header = ["Time", *CREDIT_CARD_COLUMNS, "Class"]
    lines = [",".join(header)]
    lines += [",".join([*map(str, row), f'"{int(i < 2)}"']) for i, row in enumerate(values)]
    return values, "\n".join(lines) + "\n"


def write(folder, name, text):
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(os.path.splitext(name)[1], open)
    with opener(folder / name, "wt") as stream:
        stream.write(text)


@pytest.mark.parametrize("name", ["creditcard.csv", "creditcard.csv.gz", "creditcard.csv.xz", "creditcard.parquet"])
def test_every_format_gives_the_same_table(tmp_path, small_table, name):
    values, text = small_table
    if name.endswith("parquet"):
        import pyarrow.csv
        import pyarrow.parquet

        write(tmp_path, "other.csv", text)
        pyarrow.parquet.write_table(pyarrow.csv.read_csv(tmp_path / "other.csv"), tmp_path / name)
    else:
        write(tmp_path, name, text)
    bunch = fetch_creditcard(tmp_path)
    np.testing.assert_allclose(bunch.data, values)
    assert bunch.target.tolist() == [1, 1, 0, 0, 0, 0]
    assert bunch.feature_names[:2] == ["Time", "V1"]
    X, y = fetch_creditcard(tmp_path / name, return_X_y=True)
    assert X.shape == (6, 30)
    assert len(y) == 6


def test_the_environment_names_the_folder(tmp_path, small_table, monkeypatch):
    write(tmp_path, "creditcard.csv", small_table[1])
    monkeypatch.setenv("SCOREFIELD_DATA", str(tmp_path))
    assert fetch_creditcard().source == str(tmp_path / "creditcard.csv")


def test_a_table_without_time_is_taken(tmp_path, small_table):
    values, text = small_table
    write(tmp_path, "creditcard.csv", "\n".join(line.partition(",")[2] for line in text.splitlines()))
    bunch = fetch_creditcard(tmp_path)
    assert bunch.feature_names[0] == "V1"
    np.testing.assert_allclose(bunch.data, values[:, 1:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace("V7", "W7"), "none named V7"),
        (lambda t: t + t.splitlines()[-1] + "\n", "Expected 6 rows .* got 7"),
        (lambda t: t.replace('"1"', '"0"'), "Expected 2 rows of Class 1"),
        (lambda t: t.replace('"1"', '"2"'), "Expected 2 rows of Class 1"),
        (lambda t: t.replace(t.splitlines()[2].split(",")[3], "nothing"), "Expected numbers"),
        (lambda t: t.replace(t.splitlines()[2].split(",")[3], "nan"), "no missing value"),
        (lambda t: "", "readable table"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_the_reason(tmp_path, small_table, change, message):
    write(tmp_path, "creditcard.csv", change(small_table[1]))
    with pytest.raises(ValueError, match=message):
        fetch_creditcard(tmp_path)


@pytest.mark.parametrize("name", ["creditcard.parquet", "creditcard.csv.gz", "creditcard.csv.xz"])
def test_a_damaged_file_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"\x1f\x8bnot what it says")
    with pytest.raises(ValueError, match="readable table"):
        fetch_creditcard(tmp_path)


def test_an_empty_folder_and_a_missing_one(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"creditcard\.csv"):
        fetch_creditcard(tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        fetch_creditcard(tmp_path / "nowhere")


def test_the_public_source_is_asked_without_a_folder(monkeypatch, small_table):
    from sklearn.utils import Bunch

    values, _ = small_table
    asked = []

    def openml(**options):
        asked.append(options["data_id"])
        return Bunch(feature_names=list(CREDIT_CARD_COLUMNS), data=values[:, 1:], target=np.array(list("110000")))

    monkeypatch.setattr(datasets, "fetch_openml", openml)
    monkeypatch.delenv("SCOREFIELD_DATA", raising=False)
    assert fetch_creditcard().target.sum() == 2
    assert asked == [1597]


@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="SCOREFIELD_DATA is not set")
def test_the_real_table_has_its_counts():
    bunch = fetch_creditcard()
    assert bunch.data.shape == (284_807, 30)
    assert bunch.target.sum() == 492
    first = bunch.feature_names.index("V1")
    frauds = bunch.data[bunch.target == 1][:, first : first + 10]
    others = bunch.data[bunch.target == 0][:, first : first + 10]
    peaks = [np.exp(-0.5 * np.linalg.slogdet(2 * np.pi * np.cov(part.T))[1]) for part in (others, frauds)]
    # The Gaussian anchors that the paper prints for these ten columns, 7.0e-6 and 5.0e-8, to a factor of 1.5.
    assert abs(np.log(peaks[0] / 7.0e-6)) < np.log(1.5)
    assert abs(np.log(peaks[1] / 5.0e-8)) < np.log(1.5)
