"""Dask collections: lazy, equal to tables in memory, one model and one compilation a worker; a cluster of processes."""

import contextlib
import itertools
import os
import pathlib
import signal
import time

import cloudpickle
import joblib
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

from scorefield import ScoreClassifier, ScoreDensity, ScoreOverSampler, resample_to_parquet
from scorefield.data.files import whole_folder
from scorefield.estimators.distributed import _key_patterns
from scorefield.models import row_choice

REASON = "dask is an extra: pip install scorefield[dask]"
dask = pytest.importorskip("dask", reason=REASON)
da = pytest.importorskip("dask.array", reason=REASON)
dd = pytest.importorskip("dask.dataframe", reason=REASON)
distributed = pytest.importorskip("distributed", reason=REASON)
pd = pytest.importorskip("pandas", reason="dask dataframes are made of pandas'")

SHORT = ScoreDensity(hidden=(8,), max_steps=5)  # for mixed rows, where what is generated does not matter
SIZES = (300, 0, 1, 699, 2500)  # unequal partitions, one of them empty: buckets of 256, 1024 and 4096 rows
DENSITY_METHODS = ("score_samples", "grad_log_density")
CLASSIFIER_METHODS = (*DENSITY_METHODS, "predict", "predict_proba", "predict_log_proba", "decision_function")


@contextlib.contextmanager
def cluster(folder, **options):
    """A client of a small cluster; it serves where `used` says so."""
    with (
        distributed.LocalCluster(dashboard_address=None, local_directory=str(folder), **options) as workers,
        distributed.Client(workers, set_as_default=False) as client,
    ):
        yield client


@contextlib.contextmanager
def used(client):
    with dask.config.set(scheduler="dask.distributed"), client.as_current():
        yield client


@pytest.fixture(scope="module")
def of_threads(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("dask"), n_workers=1, threads_per_worker=2, processes=False) as client:
        yield client


@pytest.fixture(scope="module")
def of_processes(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("dask"), n_workers=2, threads_per_worker=1, processes=True) as client:
        yield client


@pytest.fixture
def client(of_threads):
    """Two threads of this process."""
    with used(of_threads) as client:
        yield client


@pytest.fixture
def processes(of_processes):
    """Two processes, each of which imports and compiles: for what threads cannot show."""
    with used(of_processes) as client:
        yield client


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(5).normal(size=(sum(SIZES), 3))


@pytest.fixture(scope="module")
def table(rows):
    return pd.DataFrame(rows, columns=["a", "b", "c"])


@pytest.fixture(scope="module")
def labels(rows):
    return np.array(["low", "middle", "high"])[np.digitize(rows[:, 0], [-0.5, 1.0])]


@pytest.fixture(scope="module")
def density(rows):
    return ScoreDensity("gaussian").fit(rows[:500])


@pytest.fixture(scope="module")
def classifier(table, labels):
    return ScoreClassifier(ScoreDensity("gaussian"), margin=0.1).fit(table, labels)


@pytest.fixture(scope="module")
def joint(rows, labels):
    return ScoreClassifier(n_members=1, hidden=(16, 16), max_steps=100, random_state=0).fit(rows, labels == "low")


def in_parts(table):
    """A dask dataframe with partitions of SIZES."""
    ends = np.cumsum([0, *SIZES])
    parts = [dask.delayed(table.iloc[start:end]) for start, end in itertools.pairwise(ends)]
    return dd.from_delayed(parts, meta=table.iloc[:0])


def agree(lazy, expected):
    """Same type and shape, and the same numbers but for single-precision sums taken in another order.

    Partitions are padded to another shape than the whole table, for which the compiler may split its sums elsewhere.
    """
    assert isinstance(lazy, da.Array)
    computed = lazy.compute()
    assert lazy.dtype == computed.dtype == expected.dtype
    assert lazy.ndim == expected.ndim
    assert computed.shape == expected.shape
    if expected.dtype.kind == "f":
        # Three layers of at most 16 terms, the joint network's, are uncertain by some 3 sqrt(16) = 12 roundings.
        scale = np.abs(expected).max()
        np.testing.assert_allclose(computed, expected, rtol=0, atol=12 * np.finfo(np.float32).eps * scale)
    else:
        np.testing.assert_array_equal(computed, expected)


def n_traces():
    from scorefield._jax import batching

    return batching._apply._cache_size()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", DENSITY_METHODS)
def test_density_of_an_array(client, density, rows, method, dtype):
    """Unequal partitions of rows, and two chunks of columns."""
    X = da.from_array(rows.astype(dtype), chunks=(SIZES, (2, 1)))
    lazy = getattr(density, method)(X)
    assert lazy.chunks[0] == SIZES
    agree(lazy, getattr(density, method)(rows.astype(dtype)))
    with pytest.raises(AssertionError):  # a table in another order is told from rounding
        agree(lazy, getattr(density, method)(rows[::-1].astype(dtype)))


@pytest.mark.parametrize("method", CLASSIFIER_METHODS)
def test_classifier_of_a_dataframe(client, classifier, table, method):
    """Three classes, text labels; an integer column and a single-precision one are numbers too."""
    mixed = table.assign(a=table["a"].astype("float32"), b=table["b"].round().astype("int64"))
    lazy = getattr(classifier, method)(in_parts(mixed))
    assert np.isnan(lazy.chunks[0]).all()  # the sizes of a dataframe's partitions are not known before they are made
    agree(lazy, getattr(classifier, method)(mixed))


@pytest.mark.parametrize("method", CLASSIFIER_METHODS)
def test_joint_classifier_of_an_array(client, joint, rows, method):
    agree(getattr(joint, method)(da.from_array(rows, chunks=(SIZES, 3))), getattr(joint, method)(rows))


def test_single_precision_stays(client, classifier, table):
    narrow = table.astype("float32")
    for method in set(CLASSIFIER_METHODS) - {"predict"}:
        assert getattr(classifier, method)(in_parts(narrow)).dtype == np.float32
        assert getattr(classifier, method)(narrow).dtype == np.float32


def test_other_densities_and_nullable_columns(client, table, labels):
    model = ScoreClassifier(KernelDensity()).fit(table[:300], labels[:300])
    agree(model.predict_proba(in_parts(table).astype("Float64")), model.predict_proba(table))


def test_results_go_back_into_the_dataframe(client, classifier, table):
    frame = in_parts(table)
    frame["log_density"] = classifier.score_samples(frame)
    agree(frame["log_density"].to_dask_array(), classifier.score_samples(table))
    assert frame["log_density"].compute().index.equals(table.index)


def test_nothing_runs_until_it_is_computed(density, classifier, table, rows):
    def refuse(block):
        raise RuntimeError("this block was computed")

    X = da.from_array(rows, chunks=(SIZES, 3)).map_blocks(refuse, dtype=float, meta=np.empty((0, 3)))
    frame = in_parts(table).map_partitions(refuse, meta=table.iloc[:0])
    for lazy in [density.score_samples(X), classifier.predict(frame)]:
        with pytest.raises(RuntimeError, match="this block was computed"):
            lazy.compute(scheduler="synchronous")


def test_a_later_fit_does_not_change_what_was_asked(rows):
    model = ScoreDensity("gaussian").fit(rows)
    expected = model.score_samples(rows)
    lazy = model.score_samples(da.from_array(rows, chunks=(SIZES, 3)))
    model.fit(5 * rows)
    agree(lazy, expected)
    assert not np.allclose(model.score_samples(rows), expected)


def nodes_with(part, lazy):
    """How many tasks carry some bytes, when each is pickled by itself, as it is on its way to a worker."""
    graph = dask.optimize(lazy)[0].__dask_graph__()
    return sum(part in cloudpickle.dumps(node) for node in dict(graph).values())


@pytest.mark.parametrize("n_parts", [4, 40])
def test_the_model_is_one_node_of_the_graph(density, rows, n_parts):
    """Whatever the number of partitions, and for several results at once."""
    part_of_model = density.model_.start_rows.tobytes()
    X = da.zeros((4000, 3), chunks=(4000 // n_parts, 3))
    both = da.concatenate([density.score_samples(X)[:, None], density.grad_log_density(X)], axis=1)
    assert nodes_with(part_of_model, both) == 1
    frame = dd.from_dask_array(X, columns=["a", "b", "c"])
    named = ScoreDensity("gaussian").fit(pd.DataFrame(rows[:500], columns=["a", "b", "c"]))
    assert nodes_with(named.model_.start_rows.tobytes(), named.score_samples(frame)) == 1
    naive = X.map_blocks(density.score_samples, drop_axis=1, dtype=float)
    assert nodes_with(part_of_model, naive) == n_parts  # the control: each task carries it


def test_one_compilation_a_worker(processes):
    """Arrays and dataframes with partitions of several buckets: one trace; as tables in memory they take three."""
    rows = np.random.default_rng(6).normal(size=(sum(SIZES), 4))  # columns that no other test has compiled for
    model = ScoreDensity("gaussian").fit(rows)
    before = processes.run(n_traces)

    def new_traces():
        return {n - before[worker] for worker, n in processes.run(n_traces).items()}

    X = da.from_array(rows, chunks=(SIZES, 4)).map_blocks(slowly, dtype=float)
    model.grad_log_density(X).compute()
    assert new_traces() == {1}
    model.grad_log_density(X.rechunk((1750, 4))).compute()
    model.grad_log_density(dd.from_pandas(pd.DataFrame(rows), npartitions=5)).compute()
    assert new_traces() == {1}
    processes.run(score_in_memory, model, [rows[:300], rows[:699], rows[:2500]])
    assert new_traces() == {1 + 3}


def slowly(block):
    """Long enough that both workers get some of the tasks."""
    time.sleep(0.2)
    return block


def score_in_memory(density, tables):
    for table in tables:
        density.grad_log_density(table)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f[["a", "b"]], "Expected 3 columns, got 2; select"),
        (lambda f: f[["b", "a", "c"]], "names must be in the same order"),
        (lambda f: f.rename(columns={"a": "z"}), "feature names should match"),
        (lambda f: f.assign(a="text"), "Expected numbers in column 'a', got (str|object).* encode"),
        (lambda f: f.assign(a=f["a"].astype("category")), "Expected numbers in column 'a', got category"),
        (lambda f: f["a"], "Expected a dask array or dataframe of two dimensions, got Series"),
        (lambda f: da.ones((4, 3, 2)), "of two dimensions, got Array"),
        (lambda f: da.ones((4, 3), dtype=complex), "Expected numbers in the array, got complex128"),
        (lambda f: dask.delayed(1), "of two dimensions, got Delayed"),
    ],
)
def test_bad_collections_are_refused_when_called(classifier, table, change, message):
    with pytest.raises(ValueError, match=message):
        classifier.predict(change(in_parts(table)))


def test_unfitted_and_non_finite(rows):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ScoreDensity().score_samples(da.ones((4, 3)))
    lazy = ScoreDensity("gaussian").fit(rows).score_samples(da.full((4, 3), np.nan))  # only the values can tell
    with pytest.raises(ValueError, match="contains NaN"):
        lazy.compute(scheduler="synchronous")


# Over-sampling


@pytest.fixture(scope="module")
def imbalanced():
    """Two rare classes among 400 rows; a single-precision, an integer and a category column around the target."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.normal(size=(400, 2)), columns=["x", "y"])
    table["x"] = table["x"].astype("float32")
    table["kind"] = rng.choice(["low", "middle", "high"], 400, p=[0.85, 0.1, 0.05])
    table["visits"] = rng.poisson(4.0, 400)
    table["colour"] = pd.Categorical(rng.choice(["red", "blue"], 400))
    return table


def sorted_rows(table):
    """The rows as a multiset."""
    plain = table.astype({name: object for name in table.columns if str(table[name].dtype) in ("category", "str")})
    return sorted(map(tuple, plain.to_numpy(dtype=object).tolist()))


PLAIN = {"visits": "whole number"}  # few values, which would be taken for levels


def in_memory(sampler, table, target):
    X, y = sampler.fit_resample(table.drop(columns=target), table[target])
    return X.assign(**{target: np.asarray(y)})[list(table.columns)]


@pytest.mark.parametrize(
    ("strategy", "where"), [("auto", "everywhere"), ("minority", "everywhere"), ({"high": 100}, "clear")]
)
def test_same_rows_as_in_memory(client, imbalanced, tmp_path, strategy, where):
    imbalanced = imbalanced.drop(columns="colour")  # tables of numbers alone have the same rows either way
    sampler = ScoreOverSampler(
        purpose="sharing",
        sampling_strategy=strategy,
        density=ScoreDensity("gaussian"),
        random_state=4,
        columns=PLAIN,
        where=where,
    )
    frame = dd.from_pandas(imbalanced, npartitions=5)
    n_new = resample_to_parquet(sampler, frame, "kind", tmp_path / "more")
    assert not hasattr(sampler, "densities_")  # it was not changed
    expected = in_memory(sampler, imbalanced, "kind")
    more = expected["kind"].value_counts() - imbalanced["kind"].value_counts()
    assert n_new == more[more > 0].to_dict()
    result = dd.read_parquet(tmp_path / "more").compute()
    assert sorted_rows(result) == sorted_rows(expected)
    assert result.dtypes[["x", "y", "visits"]].equals(imbalanced.dtypes[["x", "y", "visits"]])
    other = ScoreOverSampler(
        purpose="sharing", sampling_strategy=strategy, density=ScoreDensity("gaussian"), random_state=5, columns=PLAIN
    )
    other = in_memory(other, imbalanced, "kind")
    assert sorted_rows(result) != sorted_rows(other)  # the control: another seed


@pytest.mark.usefixtures("untrained")
def test_partitions_pass_through(client, imbalanced, tmp_path):
    """The first files hold the partitions row by row, an empty one too; the rest are new rows of the rare classes."""
    parts = [imbalanced.iloc[:150], imbalanced.iloc[:0], imbalanced.iloc[150:]]
    frame = dd.from_map(lambda part: part, parts, meta=imbalanced.iloc[:0])
    sampler = ScoreOverSampler(purpose="sharing", random_state=0, density=SHORT)
    resample_to_parquet(sampler, frame, "kind", tmp_path / "m")
    for i, part in enumerate(parts):
        pd.testing.assert_frame_equal(
            pd.read_parquet(tmp_path / "m" / f"part.{i}.parquet").astype(part.dtypes), part.reset_index(drop=True)
        )
    assert set(pd.read_parquet(tmp_path / "m" / "part.3.parquet")["kind"]) == {"middle", "high"}


def test_a_class_without_spread(imbalanced, tmp_path):
    """One rare row: the scale of its noise is that of the whole table, which stays in its partitions."""
    table = imbalanced[["x", "y", "visits"]].assign(kind=[1, *[0] * 399])
    sampler = ScoreOverSampler(purpose="sharing", random_state=0, columns=PLAIN)
    with pytest.warns(UserWarning, match="Class 1 has only one row: its new rows are noise around one row") as seen:
        resample_to_parquet(sampler, dd.from_pandas(table, npartitions=3), "kind", tmp_path / "more")
    assert seen[0].filename == __file__
    with pytest.warns(UserWarning, match="noise around one row") as seen:
        expected = in_memory(sampler, table, "kind")
    assert seen[0].filename == __file__
    result = dd.read_parquet(tmp_path / "more").compute().reset_index(drop=True)
    pd.testing.assert_frame_equal(result, expected, rtol=1e-6)  # deviations of parts are put together in another order
    assert result.loc[result["kind"] == 1, "y"].std() > 0.05


def test_nothing_to_generate(imbalanced, tmp_path):
    balanced = imbalanced[["x", "y"]].assign(kind=np.arange(400) % 2 == 0)
    frame = dd.from_pandas(balanced, npartitions=2)
    assert resample_to_parquet(ScoreOverSampler(), frame, "kind", tmp_path / "same") == {}
    assert sorted_rows(dd.read_parquet(tmp_path / "same").compute()) == sorted_rows(balanced)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.compute(), "Expected a dask dataframe, got DataFrame; use sampler.fit_resample"),
        (lambda f: f.drop(columns="kind"), "Expected target to be one of .* got 'kind'"),
        (lambda f: f[["kind"]], "Expected columns beside 'kind', got none"),
        (lambda f: f.assign(kind="one"), "Expected at least two classes in 'kind', got"),
        (lambda f: f.assign(kind=f["kind"].replace("low", None)), "Expected a label in every row of 'kind'"),
    ],
)
def test_tables_that_cannot_be_resampled(imbalanced, tmp_path, change, message):
    frame = dd.from_pandas(imbalanced, npartitions=2)
    with pytest.raises(ValueError, match=message):
        resample_to_parquet(ScoreOverSampler(), change(frame), "kind", tmp_path / "more")
    assert list(tmp_path.iterdir()) == []


def test_other_samplers_are_refused(imbalanced, tmp_path):
    with pytest.raises(ValueError, match="Expected a ScoreOverSampler, got KernelDensity"):
        resample_to_parquet(KernelDensity(), dd.from_pandas(imbalanced), "kind", tmp_path / "more")


@pytest.mark.usefixtures("untrained")
def test_a_folder_is_whole_or_absent(imbalanced, tmp_path):
    def fail_late(part):
        if any(pathlib.Path(tmp_path).glob(".more.*.partial/part.*.parquet")):
            raise RuntimeError("the second file cannot be written")
        return part

    frame = dd.from_pandas(imbalanced, npartitions=2).map_partitions(fail_late, meta=imbalanced.iloc[:0])
    sampler = ScoreOverSampler(purpose="sharing", density=SHORT)
    with dask.config.set(scheduler="synchronous"), pytest.raises(RuntimeError, match="second file cannot be written"):
        resample_to_parquet(sampler, frame, "kind", tmp_path / "more")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileExistsError, match="Expected a new folder"), whole_folder(tmp_path):
        pass
    with pytest.raises(FileNotFoundError, match="Expected an existing folder"), whole_folder(tmp_path / "no" / "more"):
        pass


@pytest.mark.usefixtures("untrained")
def test_new_keys_of_a_mixed_table_follow_those_of_all_partitions(tmp_path, rng):
    """The largest are keys of rows that nothing is learned from."""
    n = 120
    table = pd.DataFrame(
        {
            "id": np.arange(n),
            "code": [f"C-{i:04d}" for i in rng.permutation(n)],
            "x": rng.normal(size=n),
            "level": rng.choice(["a", "b"], n),
            "kind": np.repeat(["rare", "common"], [20, 100]),
        }
    )
    sampler = ScoreOverSampler(purpose="sharing", density=SHORT, random_state=0)
    resample_to_parquet(sampler, dd.from_pandas(table, npartitions=3), "kind", tmp_path / "more")
    written = dd.read_parquet(tmp_path / "more").compute()[n:]
    more, _ = sampler.fit_resample(table.drop(columns="kind"), table["kind"])
    for name, expected in (("id", list(range(n, 200))), ("code", [f"C-{i:04d}" for i in range(n, 200)])):
        assert written[name].tolist() == more[name][n:].tolist() == expected
    assert written["id"].dtype == "int64"
    examples = _key_patterns(dd.from_pandas(table[["id"]], npartitions=3))
    assert examples == {"id": {"type": "whole", "low": 0, "high": n - 1, "step": 1}}


# Fits on a cluster, through joblib


class HereOrThere(KernelDensity):
    """A density that remembers the process that fitted it."""

    def fit(self, X):
        self.pid_ = os.getpid()
        return super().fit(X)


def test_classes_are_fitted_on_workers(processes, table, labels):
    """Each with the seed that it has in one process, which the anchor shows: it is a Monte-Carlo estimate."""
    model = ScoreClassifier(ScoreDensity("gaussian", anchor="importance"), random_state=0)
    here = model.fit(table, labels).predict_proba(table)
    with joblib.parallel_config("dask"):
        there = model.fit(table, labels).predict_proba(table)
    np.testing.assert_array_equal(here, there)
    with joblib.parallel_config("dask"):
        densities = ScoreClassifier(HereOrThere()).fit(table, labels).densities_
    assert {d.pid_ for d in densities} <= set(processes.run(os.getpid).values())


def scorer_with_process(model, X, y):
    return {"accuracy": model.score(X, y), "process": os.getpid()}


@pytest.mark.slow
def test_grid_search_on_workers(processes, rows, labels):
    """Candidates and folds are tasks; the separate densities inside them stay in their task's process."""
    grid = {"density__noise": [0.1, 2.0], "priors": [None, "equal"]}
    model = ScoreClassifier(ScoreDensity("gaussian"), random_state=0)
    search = GridSearchCV(model, grid, scoring=scorer_with_process, refit="accuracy", cv=2)
    here = search.fit(rows, labels).cv_results_
    with joblib.parallel_config("dask"):
        there = search.fit(rows, labels).cv_results_
    np.testing.assert_array_equal(here["mean_test_accuracy"], there["mean_test_accuracy"])
    assert set(there["split0_test_process"]) <= set(processes.run(os.getpid).values())
    assert set(here["split0_test_process"]) == {os.getpid()}


def die_once(part, flag):
    """The process ends in the middle of its first partition."""
    try:
        flag.touch(exist_ok=False)
    except FileExistsError:
        return part
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_fit_survives_a_killed_worker(processes, table, tmp_path, monkeypatch):
    """What was lost is counted and chosen again: the bits are those of a fit in memory."""
    monkeypatch.setattr(row_choice, "MOST_ROWS", 500)
    light = ScoreClassifier(n_members=1, hidden=(16, 16), max_steps=50, random_state=0)
    labelled = table.assign(rare=(table["a"] > 1.3).astype(int))
    expected = light.fit(table, labelled["rare"]).predict_proba(table)
    before, flag = set(processes.run(os.getpid).values()), tmp_path / "died"
    frame = in_parts(labelled).map_partitions(die_once, flag, meta=labelled.iloc[:0])
    np.testing.assert_array_equal(light.fit(frame, "rare").predict_proba(table), expected)
    assert flag.exists()
    processes.wait_for_workers(2, timeout=60)
    assert set(processes.run(os.getpid).values()) != before


def test_a_killed_worker(processes, rows):
    """The worker that holds the model dies in mid-job; model and blocks are made again, the results are the same.

    The last test, as the cluster is short of a worker for some seconds.
    """
    import psutil  # comes with distributed

    model = ScoreDensity("gaussian").fit(rows)
    lazy = model.score_samples(da.from_array(rows, chunks=(350, 3)).map_blocks(slowly, dtype=float))
    pids = processes.run(os.getpid)
    future = processes.compute(lazy)
    deadline = time.monotonic() + 30
    while not (holders := [w for key, w in processes.who_has().items() if "ScoreDensity" in str(key) and w]):
        assert time.monotonic() < deadline, "the model never reached a worker"
        time.sleep(0.02)
    assert not future.done()
    killed = pids[holders[0][0]]
    psutil.Process(killed).kill()
    np.testing.assert_allclose(future.result(timeout=60), model.score_samples(rows), rtol=12 * np.finfo("f4").eps)
    assert killed not in processes.run(os.getpid).values()
