"""Truths that the tests measure against, and a browser to open pages in."""

import contextlib
import copy
import dataclasses
import itertools
import json
import os
import pickle
import select
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest

from scorefield._jax import pytrees
from scorefield.fields.mixtures import mixture
from scorefield.fields.networks import init_network
from scorefield.models import joint_model
from scorefield.training.loop import Trained


@pytest.fixture(scope="session", autouse=True)
def all_programs_kept():
    """Tests compare the numbers of programs before and after a fit, which must not be forgotten in between."""
    pytrees.MAX_PROGRAMS = 1 << 20


@pytest.fixture(autouse=True)
def programs_forgotten_between_tests():
    """A process may have only so many memory maps, of which every program takes some: without them XLA crashes."""
    if pytrees.cached_programs() > 400:
        jax.clear_caches()


@pytest.fixture(scope="session")
def skewed_mixture():
    """Two overlapping components of unequal mass and shape: a symmetric target could not detect a reversed sign."""
    return mixture([0.7, 0.3], [[-0.5, 0.3], [1.2, -0.8]], [[[0.8, 0.3], [0.3, 0.5]], [[0.4, -0.1], [-0.1, 0.6]]])


@pytest.fixture(scope="session")
def paper_classes():
    """The paper's two 2-D Gaussian classes, centred at (0, 0) and (4, 4)."""
    return (
        mixture([1.0], [[0.0, 0.0]], [[[1.0, -0.5], [-0.5, 1.0]]]),
        mixture([1.0], [[4.0, 4.0]], [[[1.0, 0.5], [0.5, 1.0]]]),
    )


@pytest.fixture(scope="session")
def random_networks():
    """A context in which joint models are fitted but not trained: their networks get random last layers.

    Tests of what is done with a network need no good one, and training programs take seconds to compile.
    """

    def untrained(keys, starts, *arguments, **options):
        return [Trained(random_last_layer(start), np.zeros(1), np.zeros(1), np.ones(1, int), 1) for start in starts]

    def random_last_layer(joint):
        (member,) = joint.members
        *first, last = member.network.weights
        last = 2 * np.random.default_rng(0).normal(size=last.shape).astype(np.float32)
        network = dataclasses.replace(member.network, weights=(*first, last))
        return dataclasses.replace(joint, members=(dataclasses.replace(member, network=network),))

    @contextlib.contextmanager
    def context():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(joint_model, "train_many", untrained)
            yield

    return context


@pytest.fixture
def untrained(random_networks):
    """Joint models that the test fits are not trained; those of wider fixtures are."""
    with random_networks():
        yield


@pytest.fixture(scope="session")
def with_random_rules():
    """A function that gives a fitted joint classifier a rule model of random weights in its posterior."""

    def change(model, share):
        joint = model.model_.joint
        first = joint.members[0]
        sizes = (len(first.network.weights[0]), 8, len(model.classes_))
        network = init_network(jax.random.key(3), sizes)
        network = dataclasses.replace(network, weights=tuple(4 * weight for weight in network.weights))
        rules = dataclasses.replace(first, network=network)
        model.model_.joint = dataclasses.replace(joint, rules=rules, share=np.float32(share))
        return model

    return change


@pytest.fixture(scope="session")
def keeps_the_promises_of_a_model():
    """A function that checks a `TableModel` of three classes at rows of its space."""

    def check(model, rows):
        n = len(rows)
        logits, logs = model.logits(rows), model.log_density(rows)
        assert logits.shape == logs.shape == (n, 3)
        assert np.isfinite(logits).all()
        assert np.isfinite(logs).all()
        for both, alone in zip(model.logits_and_log_density(rows), (logits, logs), strict=True):
            np.testing.assert_allclose(both, alone, atol=1e-4)
        scores = model.scores(rows)
        assert scores.shape[:2] == (n, 3)
        if model.space.layout is None:  # central differences of the log density, in steps of the columns' units
            scale = np.std(rows, axis=0)
            for j, step in enumerate(1e-2 * np.diag(scale)):
                slope = (model.log_density(rows + step) - model.log_density(rows - step)) / (2 * step[j])
                assert np.median(np.abs(slope - scores[:, :, j])) < 0.05 * np.abs(scores[:, :, j]).max()
        known = model.known_rows()
        assert [part.shape[1] for part in known] == [rows.shape[1]] * 3
        one, same, other = (np.asarray(model.generated(seed, 5, 1)) for seed in (3, 3, 4))
        assert len(one) == 5
        assert str(one) == str(same) != str(other)
        for again in (
            copy.deepcopy(model),
            pickle.loads(pickle.dumps(model)),
            type(model).from_plain(model.to_plain()),
        ):
            np.testing.assert_array_equal(again.logits(rows), logits)
            np.testing.assert_array_equal(again.log_density(rows), logs)

    return check


@pytest.fixture(scope="session")
def key():
    return jax.random.key(20221)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# The middle ones keep a browser from looking for updates at every start.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
)  # fmt: skip
# Chromium reads commands from descriptor 3 and answers on 4.
LAUNCH = "import os, sys; a = sys.argv[1:]; os.dup2(int(a[0]), 3); os.dup2(int(a[1]), 4); os.execv(a[2], a[2:])"
LOADED = "new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))"


class Browser:
    """One tab of a headless Chromium, driven through the DevTools protocol."""

    def __init__(self, profile):
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(commands), str(answers), CHROMIUM, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(commands, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(commands)
        os.close(answers)
        self.counter, self.unread, self.session, self.messages = itertools.count(), b"", {}, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def receive(self):
        """The next message, which ends at a zero byte."""
        while b"\0" not in self.unread:
            if not select.select([self.answers], [], [], 120)[0]:
                raise TimeoutError("Expected an answer of the browser, got none in 120 s")
            part = os.read(self.answers, 1 << 16)
            if not part:
                raise ConnectionError("Expected an answer of the browser, got its end")
            self.unread += part
        first, self.unread = self.unread.split(b"\0", 1)
        return json.loads(first)

    def call(self, method, **parameters):
        """The result of a DevTools command; errors and console output that come before it are kept in `messages`."""
        number = next(self.counter)
        command = {"id": number, "method": method, "params": parameters, **self.session}
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while (answer := self.receive()).get("id") != number:
            if answer["method"] in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                self.messages.append(json.dumps(answer["params"]))
        if "error" in answer:
            raise RuntimeError(answer["error"]["message"])
        return answer["result"]

    def open(self, path, width=1200, height=900, **preferences):
        """Load a file; preferences are those of the visitor, such as reduced_motion="reduce"."""
        features = {"color_scheme": "light", "reduced_motion": "no-preference", **preferences}
        wanted = [{"name": "prefers-" + name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=wanted)
        self.messages = []
        self.call("Page.navigate", url=path.as_uri())
        self.evaluate(LOADED)

    def evaluate(self, expression):
        """The value of an expression, or of its promise, in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def overflow(self):
        """By how many pixels the page is wider than the window."""
        return self.evaluate("document.documentElement.scrollWidth - innerWidth")

    def close(self):
        self.session = {}
        self.call("Browser.close")
        self.process.wait(60)
        os.close(self.commands)
        os.close(self.answers)


@pytest.fixture(scope="session")
def browser_of_session(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def browser(browser_of_session):
    """The browser; its page is closed after the test, since an animated one would go on to take half a core."""
    yield browser_of_session
    browser_of_session.call("Page.navigate", url="about:blank")
