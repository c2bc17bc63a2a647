"""Seeds, keys and named random streams; global generators are never used."""

import enum
import numbers

import jax
import numpy as np


class Stream(enum.IntEnum):
    """Purposes of random numbers; each has its own stream of a key, so that draws are independent."""

    NETWORK_WEIGHTS = 1
    RANDOM_FEATURES = 2
    IMPORTANCE_DRAWS = 3
    CHAIN_STARTS = 4
    MONTE_CARLO_NODES = 5
    SMOOTHING_OFFSETS = 6
    HELD_OUT_ROWS = 7
    START_ROWS = 8
    CANDIDATE_SPLIT = 9
    ANCHOR_NOISE = 10
    EXACT_DRAWS = 11
    JOINT_ANCHOR_NOISE = 12
    CLASS_SEEDS = 13
    JOINT_START_ROWS = 14
    MEMBER_FOLDS = 15
    HELD_OUT_BLOCK = 16
    THRESHOLDS = 22
    HIDDEN_CELLS = 23
    IMPUTED = 24
    POOLED_LEVELS = 25
    SELECTION_NOISE = 26
    DIAGNOSIS = 27
    MIXTURE = 28
    DRAWN_LABELS = 29
    CHOSEN_ROWS = 30
    DONORS = 31


def host_rng(key: jax.Array, stream: Stream, *path: int) -> np.random.Generator:
    """A numpy generator for one stream of a key; drawing with numpy avoids compiling for every shape."""
    return np.random.default_rng([*np.asarray(jax.random.key_data(key)).ravel().tolist(), int(stream), *path])


def seed_from(random_state):
    """An integer seed: None takes fresh entropy, a generator is advanced once."""
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
    """A jax key from `random_state`."""
    return jax.random.key(seed_from(random_state) % (1 << 32))
