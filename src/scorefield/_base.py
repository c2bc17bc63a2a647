"""What the estimators share: seeds that leave global generators alone, progress, scikit-learn's callbacks."""

import contextlib
import numbers
import sys
import warnings

import jax
import numpy as np

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method):  # type: ignore[no-redef]
        return method


INSIDE = ("scorefield", "sklearn", "imblearn")  # packages whose lines are no use in a warning


def seed_from(random_state):
    """An integer seed: None draws fresh entropy, a generator is advanced once; global state is never touched."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, numbers.Integral):
        if random_state < 0:
            raise ValueError(f"Expected random_state >= 0, got {random_state}.")
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int32).max))
    raise ValueError(f"Expected random_state to be None, an integer or a numpy generator, got {random_state!r}.")


def key_from(random_state):
    """A jax key from any form of `random_state`."""
    return jax.random.key(seed_from(random_state) % (1 << 32))


@contextlib.contextmanager
def fit_task(estimator, **data):
    """Announce a fit to scikit-learn's callbacks, where it has them."""
    if not hasattr(estimator, "_init_callback_context"):
        yield
        return
    context = estimator._init_callback_context(max_subtasks=None)
    context.call_on_fit_task_begin(estimator=estimator, **data)
    yield
    context.call_on_fit_task_end(estimator=estimator, **data)


def warn_caller(message):
    """Warn at the line that called this library, also through scikit-learn or imbalanced-learn."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


class ProgressReport:
    """A trainer callback: a bar on standard error when verbose, and scikit-learn's fit callbacks where they are set."""

    def __init__(self, estimator, name, verbose):
        self.estimator, self.name, self.verbose = estimator, name, verbose
        self.context = getattr(estimator, "_callback_fit_ctx", None)
        self.drawn = False

    @property
    def wanted(self):
        """Whether anybody looks."""
        return bool(self.verbose) or self.context is not None

    def __call__(self, progress):
        if self.context is not None:
            task = self.context.subcontext(task_name=f"{self.name} chunk")
            task.call_on_fit_task_begin(estimator=self.estimator)
            task.call_on_fit_task_end(estimator=self.estimator)
        if self.verbose:
            self.drawn = True
            width = 30
            done = min(width, round(width * progress.step / progress.max_steps))
            bar = "#" * done + "." * (width - done)
            sys.stderr.write(
                f"\r{self.name} [{bar}] {progress.step}/{progress.max_steps} "
                f"loss {progress.loss.mean():.4f} held-out {progress.held_out_loss.mean():.4f}"
            )
            sys.stderr.flush()

    def close(self, summary):
        """End the bar's line with one sentence."""
        if self.verbose:
            sys.stderr.write(f"\n{summary}\n" if self.drawn else f"{summary}\n")
            sys.stderr.flush()
