"""Seeds, keys and random streams by name; global generators are never touched."""

import enum
import numbers

import jax
import numpy as np


class Stream(enum.IntEnum):
    """What a key's random numbers are drawn for. Each purpose has its own stream, so that none repeats another's."""

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
    BUFFER_RANKS = 17
    BUFFER_DRAWS = 18
    BUFFER_ORDER = 19
    BUFFER_REFILLS = 20
    BUFFER_FOLDS = 21
    THRESHOLDS = 22


def host_rng(key: jax.Array, stream: Stream, *path: int) -> np.random.Generator:
    """A numpy generator for one stream of a key: draws outside compiled programs need no compilation per shape."""
    return np.random.default_rng([*np.asarray(jax.random.key_data(key)).ravel().tolist(), int(stream), *path])


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
