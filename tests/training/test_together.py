"""Models that train side by side: each as it would alone, in one program where shapes agree, and none for nothing."""

import threading
import time
from functools import partial

import jax
import jax.numpy as jnp
import joblib
import numpy as np
import pytest
from sklearn.neighbors import KernelDensity

from scorefield import ScoreClassifier, ScoreDensity, ScoreFeatures, ScoreOverSampler
from scorefield._jax.errors import DivergedError
from scorefield.fields.gaussian import fit_gaussian
from scorefield.fields.neural import init_energy_field, init_vector_field
from scorefield.training import loop as training
from scorefield.training import together as tasks
from scorefield.training.loop import Progress, train, train_many
from scorefield.training.losses import ContrastiveDenoising, Exact, NoisyRows
from scorefield.training.together import Task, in_background, n_threads, side_by_side, train_together

SMALL = {"hidden": (8, 8), "max_steps": 400}


@pytest.fixture(params=["in turn", "side by side"])
def programs(request, monkeypatch):
    """Both ways of training several models, on any machine: one program for each in turn, and one for all."""
    size = {"in turn": 1, "side by side": 100}[request.param]
    monkeypatch.setattr(training, "MODELS_PER_PROGRAM", {jax.default_backend(): size})
    return request.param


@pytest.fixture
def launches(monkeypatch):
    """Models in each call of the compiled chunk."""
    seen = []
    original = training._train_chunk

    def counted(keys, *rest):
        seen.append(len(keys))
        return original(keys, *rest)

    monkeypatch.setattr(training, "_train_chunk", counted)
    return seen


def assert_close(one, other):
    """The same model but for rounding, which a few hundred steps enlarge."""
    assert one.best_step == other.best_step
    np.testing.assert_array_equal(one.steps, other.steps)
    np.testing.assert_allclose(one.held_out_loss, other.held_out_loss, rtol=1e-3)
    for a, b in zip(jax.tree.leaves(one.model), jax.tree.leaves(other.model), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-3 * max(np.abs(b).max(), 1e-3))


def task(seed, n, *, noise=0.1, hidden=(8, 8), **options):
    rng, key = np.random.default_rng(seed), jax.random.key(seed)
    rows = (rng.normal(size=(n, 2)) * [1.0, 0.5 + seed]).astype(np.float32)
    start = init_energy_field(key, fit_gaussian(rows, noise=noise), hidden=hidden, activation="silu")
    return Task(key, start, rows, ContrastiveDenoising(noise), rows[:20] + 0.01, {"max_steps": 400, **options})


@pytest.mark.parametrize("programs", [pytest.param("in turn", marks=pytest.mark.slow), "side by side"], indirect=True)
def test_a_task_is_trained_as_if_alone(programs, launches):
    """Classes of other sizes and noise levels share a program; another width has its own."""
    asked = [task(0, 100), task(1, 700, noise=0.3), task(2, 80, hidden=(9, 8)), task(3, 300)]
    together = train_together(asked)
    sizes = {"in turn": {1}, "side by side": {3, 1}}
    assert set(launches) == sizes[programs]
    for one, found in zip(asked, together, strict=True):
        alone = train(one.key, one.model, one.table, one.objective, held_out=one.held_out, **one.options)
        assert_close(found, alone)
    with pytest.raises(AssertionError):  # the control: another noise is no rounding
        assert_close(train_together([task(1, 700, noise=0.31)])[0], together[1])


@pytest.mark.parametrize("programs", ["in turn", pytest.param("side by side", marks=pytest.mark.slow)], indirect=True)
def test_learning_rates_of_their_own(programs):
    slow, fast = train_together([task(0, 100, learning_rate=rate, patience=None) for rate in (1e-5, 1e-2)])
    start = task(0, 100).model
    moved = [
        max(np.abs(a - b).max() for a, b in zip(*map(jax.tree.leaves, (fit.model, start)), strict=True))
        for fit in (slow, fast)
    ]
    assert moved[0] < 1e-2 < moved[1]


def test_early_stops_are_each_models_own(key, rng, programs, launches):
    """Forty rows in 10-D are soon memorised, four thousand are not."""
    tables = [rng.normal(size=(n, 10)).astype(np.float32) for n in (40, 4000)]
    models = [init_vector_field(key, 10, hidden=(32, 32)) for _ in tables]
    few, many = train_many(key, models, tables, Exact(), max_steps=1500, patience=3)
    assert len(few.steps) < len(many.steps)
    assert few.best_step == few.steps[np.argmin(few.held_out_loss)] == few.steps[-1] - 300
    # Nothing is trained that is not judged: running ahead of the losses never overshoots a stop.
    if programs == "in turn":
        assert len(launches) == len(few.steps) + len(many.steps)
    else:
        assert len(launches) == len(many.steps)


def test_a_callback_that_stops_wastes_at_most_a_chunk(key, rng, launches):
    model, table = init_vector_field(key, 2, hidden=(4,)), rng.normal(size=(50, 2))
    fit = train(key, model, table, Exact(), callback=lambda progress: progress.step >= 200)
    assert list(fit.steps) == [100, 200]
    assert len(launches) == 3


def test_keys_of_both_kinds(rng):
    """Those of `jax.random.PRNGKey` are arrays themselves, and no array of keys."""
    model, table = init_vector_field(jax.random.key(1), 2, hidden=(4,)), rng.normal(size=(50, 2)).astype(np.float32)

    def weights(key, model=model):
        alone = train(key, model, table, Exact(), max_steps=100)
        (grouped,) = train_together([Task(key, model, table, Exact(), None, {"max_steps": 100})])
        np.testing.assert_array_equal(*(fit.model.network.weights[0] for fit in (alone, grouped)))
        return grouped.model.network.weights[0]

    np.testing.assert_array_equal(weights(jax.random.key(0)), weights(jax.random.PRNGKey(0)))
    assert (weights(jax.random.key(0)) != weights(jax.random.PRNGKey(1))).any()


def test_objectives_are_one_or_one_each(key, rng):
    model, table = init_vector_field(key, 2, hidden=(4,)), rng.normal(size=(50, 2))
    for objectives in ({"objective": [Exact()]}, {"objective": Exact(), "held_out_objective": [Exact()] * 3}):
        with pytest.raises(ValueError, match=r"as many objectives as models, got \d and 2"):
            train_many(key, [model, model], [table], **objectives)
    with pytest.raises(ValueError, match="one key, or as many as models, got 3 and 2"):
        train_many(jax.random.split(key, 3), [model, model], [table], Exact())
    with pytest.raises(ValueError, match="patience >= 1 or None, got 0"):
        train(key, model, table, Exact(), patience=0)
    exact, noisy = train_many(key, [model, model], [table], [NoisyRows(Exact(), s) for s in (0.0, 2.0)], max_steps=100)
    assert exact.loss[0] != pytest.approx(noisy.loss[0], rel=0.05)


def test_a_divergence_names_its_task():
    good, bad = task(0, 100), task(1, 100, learning_rate=1e30)
    good.options["learning_rate"] = 1e-3
    for asked, number in (([good, bad], 1), ([bad, good], 0)):
        with pytest.raises(DivergedError, match="lower the learning rate") as error:
            train_together(asked)
        assert error.value.model == number
    assert train_together([]) == []


def test_a_model_that_has_stopped_cannot_fail_the_others(key, monkeypatch):
    """Side by side it goes on, unwatched, as long as its neighbours do."""
    monkeypatch.setattr(training, "MODELS_PER_PROGRAM", {})
    models = [init_vector_field(key, 2, hidden=(4,)) for _ in range(2)]
    (block,) = training._blocks(models, [Exact()] * 2, [Exact()] * 2, np.ones(2))
    record = training._Record(2, patience=3)
    record.stale[0] = 3
    losses = np.array([[np.nan] * 100, [1.0] * 100])
    record.judge(block, training._Chunk(range(100), block.best, losses, np.array([np.nan, 1.0])))
    assert record.n_chunks.tolist() == [0, 1]
    record.stale[0] = 0
    with pytest.raises(DivergedError, match="nan at step 100") as error:
        record.judge(block, training._Chunk(range(100, 200), block.best, losses, np.array([np.nan, 1.0])))
    assert error.value.model == 0


# Classes


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(7)
    X = np.concatenate([rng.normal(-1, 1, (300, 3)), rng.normal(1, 0.5, (150, 3)), rng.normal(3, 1, (120, 3))])
    return X, np.repeat(["blue", "green", "red"], [300, 150, 120])


def models_asked_for(monkeypatch):
    seen = []

    def spied(keys, models, *rest, **options):
        seen.append(len(models))
        return train_many(keys, models, *rest, **options)

    monkeypatch.setattr(tasks, "train_many", spied)
    return seen


@pytest.mark.parametrize("model", ["energy", *(pytest.param(m, marks=pytest.mark.slow) for m in ("diffusion", "mlp"))])
def test_classes_train_in_one_program(table, monkeypatch, programs, model):
    X, y = table
    asked = models_asked_for(monkeypatch)
    fitted = ScoreClassifier(ScoreDensity(model, **SMALL), calibration=None, random_state=0).fit(X, y)
    assert asked == [3]
    for label, density in zip(fitted.classes_, fitted.densities_, strict=True):
        alone = ScoreDensity(model, **SMALL, random_state=density.random_state).fit(X[y == label])
        np.testing.assert_allclose(alone.score_samples(X[:50]), density.score_samples(X[:50]), rtol=1e-3, atol=1e-3)
        np.testing.assert_array_equal(alone.history_["steps"], density.history_["steps"])
    assert asked == [3, 1, 1, 1]
    seeds = {density.random_state for density in fitted.densities_}
    assert len(seeds) == 3


def test_only_what_is_of_one_shape(table, monkeypatch):
    """Other rates and noise share; another width, a mixture of estimators and few rows do not."""
    X, y = table
    asked = models_asked_for(monkeypatch)
    densities = {
        "blue": ScoreDensity("energy", learning_rate=1e-3, **SMALL),
        "green": ScoreDensity("energy", noise=0.2, **SMALL),
        "red": ScoreDensity("energy", hidden=(9, 9), max_steps=400),
    }
    ScoreClassifier(densities, calibration=None, random_state=0).fit(X, y)
    assert asked == [2, 1]
    asked.clear()
    ScoreClassifier({**densities, "red": KernelDensity()}, calibration=None).fit(X, y)
    assert asked == [2]
    asked.clear()
    few = ScoreClassifier(ScoreDensity(**SMALL), calibration=None, random_state=0).fit(
        X[:520], y[:520]
    )  # "auto": 70 rows, no network
    assert asked == [2]
    assert [len(density.candidates_) for density in few.densities_] == [3, 3, 3]


def test_features_of_all_classes_train_together(table, monkeypatch):
    asked = models_asked_for(monkeypatch)
    features = ScoreFeatures(ScoreDensity("mlp", **SMALL), per_class=True, random_state=0).fit(*table)
    assert asked == [3]
    assert features.transform(table[0]).shape == (len(table[0]), 9)


def test_classes_to_over_sample_train_together(table, monkeypatch):
    """Each as in a table where it alone is wanted; a column that one class does not vary makes another shape."""
    X, y = table
    asked = models_asked_for(monkeypatch)

    def resample(X, labels):
        sampler = ScoreOverSampler(
            purpose="sharing", sampling_strategy=dict.fromkeys(labels, 200), density=ScoreDensity("energy", **SMALL)
        )
        rows, found = sampler.set_params(random_state=0).fit_resample(X, y)
        return sampler, rows[len(X) :][found[len(X) :] == "green"]

    both, rows = resample(X, ["green", "red"])
    assert asked == [2]
    assert set(both.densities_) == {"green", "red"}
    _, alone = resample(X, ["green"])
    np.testing.assert_allclose(rows, alone, atol=1e-3)
    asked.clear()
    resample(np.where((y == "red")[:, None] & [True, False, False], 1.0, X), ["green", "red"])
    assert asked == [1, 1]


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_tasks_of_joblib_give_the_same_classes(table, monkeypatch, backend):
    X, y = table
    asked = models_asked_for(monkeypatch)
    model = ScoreClassifier(ScoreDensity("energy", **SMALL), calibration=None, random_state=0)
    here = model.fit(X, y).predict_proba(X)
    assert asked == [3]
    with joblib.parallel_config(backend, n_jobs=2):
        there = model.fit(X, y).predict_proba(X)
    assert asked[1:] == ([1, 1, 1] if backend == "threading" else [])  # other processes are not watched
    np.testing.assert_allclose(here, there, atol=1e-3)


class Meddled(ScoreDensity):
    """A density with a fit of its own."""

    def fit(self, X, y=None):
        self.seen_ = len(X)
        return super().fit(X)


def test_a_fit_of_its_own_is_called(table, monkeypatch):
    X, y = table
    asked = models_asked_for(monkeypatch)
    fitted = ScoreClassifier(Meddled("energy", **SMALL), calibration=None, random_state=0).fit(X, y)
    assert [density.seen_ for density in fitted.densities_] == [300, 150, 120]
    assert asked == [1, 1, 1]


def test_errors_name_the_class(table):
    X, y = table
    with pytest.raises(ValueError, match=r"Class 'red' with 120 rows: .*lower the learning rate"):
        ScoreClassifier({
            "blue": ScoreDensity("mlp", **SMALL),
            "green": ScoreDensity("mlp", **SMALL),
            "red": ScoreDensity("mlp", learning_rate=1e30, **SMALL),
        }).fit(X, y)  # fmt: skip
    with pytest.raises(ValueError, match="Class 'blue' with 300 rows: The 'noise' parameter"):
        ScoreClassifier(ScoreDensity("energy", noise=-1.0), calibration=None).fit(X, y)
    far = X.copy()
    far[-1, 0] = 1e39
    with (
        pytest.raises(ValueError, match="Class 'red' with 120 rows: Expected finite rows"),
        np.errstate(over="ignore"),
    ):
        ScoreClassifier(ScoreDensity("mlp", standardize=False, **SMALL), calibration=None).fit(far, y)


def test_callbacks_of_a_density_are_called_for_every_class(table, monkeypatch):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    seen = []

    class Recorder:
        def setup(self, estimator, context):
            seen.append("setup")

        def on_fit_task_begin(self, estimator, context, **kwargs):
            pass

        def on_fit_task_end(self, estimator, context, **kwargs):
            pass

        def teardown(self, estimator, context):
            seen.append("teardown")

    asked = models_asked_for(monkeypatch)
    density = ScoreDensity("mlp", hidden=(8, 8), max_steps=100).set_callbacks(Recorder())
    ScoreClassifier(density, calibration=None, random_state=0).fit(*table)
    assert seen == ["setup", "teardown"] * 3
    assert asked == [1, 1, 1]


def test_one_bar_for_one_program(table, capsys):
    """Of whichever class asked for it; then a line for each that did."""
    quiet, loud = (ScoreDensity("mlp", hidden=(8, 8), max_steps=200, verbose=v, random_state=0) for v in (0, 1))
    for densities, lines in (({"blue": quiet, "green": loud, "red": quiet}, 2), (dict.fromkeys("bgr", loud), 4)):
        names = dict(zip(["blue", "green", "red"], densities.values(), strict=True))
        ScoreClassifier(names, calibration=None).fit(*table)
        shown = capsys.readouterr().err.rstrip("\n").split("\n")
        assert len(shown) == lines
        assert shown[0].count("\r") == 2
        assert all(line.startswith("mlp: weights of step") for line in shown[1:])


def test_a_single_class_stays_in_this_process(table, monkeypatch):
    """Another process would have to import and compile first."""
    X, y = table
    asked = models_asked_for(monkeypatch)
    with joblib.parallel_config("loky", n_jobs=2):
        ScoreOverSampler(
            purpose="sharing", sampling_strategy={"red": 130}, density=ScoreDensity("mlp", **SMALL), random_state=0
        ).fit_resample(X, y)
    assert asked == [1]


def group_of(steps, number, callback):
    """A group of models that trains for some steps and tells of each."""
    for step in range(1, steps[number] + 1):
        losses = np.full(2, number, float)
        if callback and callback(Progress(step, 10, losses, losses)):
            return f"group {number} was stopped"
        time.sleep(0.01)
    return f"group {number}"


@pytest.fixture(params=["1", "3"])
def threads(request, monkeypatch):
    monkeypatch.setenv("NPROC", request.param)
    return int(request.param)


def test_groups_side_by_side_report_as_one(threads):
    seen, steps, begin = [], [3, 10, 6], threading.Barrier(threads)

    def function(number, callback):
        begin.wait()
        return group_of(steps, number, callback)

    found = side_by_side(function, 3, seen.append)
    assert found == ["group 0", "group 1", "group 2"]
    assert len(seen) == sum(steps)
    assert max(len(progress.loss) for progress in seen) <= 2 * threads  # two models of each group
    told = [progress.step for progress in seen]
    assert told == sorted(told)
    assert told[0] == 0  # one step of thirty
    assert told[-1] >= 7  # of the last group, which makes three steps or more; the others are done
    assert all(progress.max_steps == 10 for progress in seen)


def test_there_may_be_more_groups_than_threads(threads):
    ran = side_by_side(lambda number, callback: (number, threading.get_ident()), 7, None)
    assert [number for number, _ in ran] == list(range(7))
    assert len({thread for _, thread in ran}) <= threads


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_of_one_group_ends_the_others(failing, monkeypatch):
    monkeypatch.setenv("NPROC", "2")
    ended = []

    def function(number, callback):
        if number == failing:
            time.sleep(0.05)
            raise ZeroDivisionError
        ended.append(group_of([1000] * 3, number, callback))

    with pytest.raises(ZeroDivisionError):
        side_by_side(function, 3, None)
    assert f"group {1 - failing} was stopped" in ended
    assert all(text.endswith("was stopped") for text in ended)


def test_a_callback_ends_all_groups(threads):
    found = side_by_side(partial(group_of, [1000] * 3), 3, lambda progress: True)
    assert found == [f"group {number} was stopped" for number in range(3)]


def test_work_in_the_background_is_done_once_and_its_errors_are_told(threads):
    ran = []
    with in_background(lambda: ran.append(threading.get_ident()) or "result") as result:
        assert result() == "result"
    assert len(ran) == 1
    assert (ran[0] == threading.get_ident()) == (threads == 1)
    with in_background(lambda: 1 / 0) as result, pytest.raises(ZeroDivisionError):
        result()


def test_the_device_of_the_calling_thread_is_that_of_every_group(threads):
    begin = threading.Barrier(threads)

    def device(number, callback):
        begin.wait()  # each in a thread of its own
        return jax.config.jax_default_device

    with jax.default_device(jax.devices()[0]):
        assert side_by_side(device, 3, None) == [jax.devices()[0]] * 3


def test_unusual_settings_keep_to_the_calling_thread(threads):
    with jax.enable_x64(True):
        found = side_by_side(lambda number, callback: (jnp.ones(1).dtype, threading.get_ident()), 2, None)
    assert found == [(np.float64, threading.get_ident())] * 2


def test_threads_change_no_bit_of_a_classifier(table, monkeypatch):
    found = []
    for asked in ("1", "3"):
        monkeypatch.setenv("NPROC", asked)
        model = ScoreClassifier(n_members=3, max_steps=100, random_state=0).fit(*table)
        found.append(model.predict_proba(table[0]))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(("asked", "least"), [("3", 3), ("0", 1), ("", 1), ("many", 1)])
def test_threads_follow_what_jax_goes_by(monkeypatch, asked, least):
    monkeypatch.setenv("NPROC", asked)
    assert n_threads() == least if asked == "3" else n_threads() >= least
