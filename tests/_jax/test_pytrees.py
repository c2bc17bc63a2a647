"""What training leaves as it is, and the trees without it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scorefield._jax.pytrees import merge_untrained, pytree, split_untrained, static, untrained
from scorefield.fields.diffusion import init_diffusion_field
from scorefield.fields.gaussian import standard_gaussian
from scorefield.fields.joint import columns_of, init_joint
from scorefield.fields.neural import init_energy_field, init_vector_field


@pytree
class Scaled:
    weight: jax.Array
    unit: dict = untrained()
    power: int = static(default=2)


@pytree
class Pair:
    parts: tuple[Scaled, ...]
    gain: jax.Array | None = untrained(default=None)


def pair():
    first, second = (Scaled(np.full(2, i, np.float32), {"a": np.ones(3), "b": np.zeros(())}) for i in (1, 2))
    return Pair((first, second))


def test_leaves_are_in_one_of_two_trees():
    trained, fixed = split_untrained(pair())
    assert [leaf.tolist() for leaf in jax.tree.leaves(trained)] == [[1, 1], [2, 2]]
    assert [np.shape(leaf) for leaf in jax.tree.leaves(fixed)] == [(3,), ()] * 2
    assert trained.parts[0].power == fixed.parts[1].power == 2
    again = merge_untrained(trained, fixed)
    assert jax.tree.structure(again) == jax.tree.structure(pair())
    for one, other in zip(jax.tree.leaves(again), jax.tree.leaves(pair()), strict=True):
        np.testing.assert_array_equal(one, other)


def test_trees_of_other_kinds_are_trees_too():
    inner = pair().parts[0]
    tree = {"ours": [inner, np.ones(1)], "plain": (np.zeros(2), None)}
    trained, fixed = split_untrained(tree)
    assert [np.shape(leaf) for leaf in jax.tree.leaves(trained)] == [(2,), (1,), (2,)]
    assert [np.shape(leaf) for leaf in jax.tree.leaves(fixed)] == [(3,), ()]
    assert jax.tree.structure(merge_untrained(trained, fixed)) == jax.tree.structure(tree)


def test_gradients_are_those_of_trained_leaves():
    trained, fixed = split_untrained(pair())

    def value(trained):
        return sum(jnp.sum(part.weight) * jnp.sum(part.unit["a"]) for part in merge_untrained(trained, fixed).parts)

    slopes = jax.jit(jax.grad(value))(trained)
    assert [leaf.tolist() for leaf in jax.tree.leaves(slopes)] == [[3, 3], [3, 3]]


@pytest.mark.parametrize("kind", ["vector", "energy", "diffusion", "joint"])
def test_networks_are_all_that_is_trained_of_a_field(key, rng, kind):
    rows, base = rng.normal(size=(40, 2)).astype(np.float32), standard_gaussian(2)
    made = {
        "vector": lambda: init_vector_field(key, 2, hidden=(4,)),
        "energy": lambda: init_energy_field(key, base, hidden=(4,)),
        "diffusion": lambda: init_diffusion_field(key, rows, hidden=(4,)),
        "joint": lambda: init_joint(key, base, columns_of(rows, np.eye(2)), 2, hidden=(4,), gains=np.ones(4)),
    }[kind]()
    n_networks = 4 + 2 * (kind == "joint")  # weights and biases of two layers, and thresholds with their slopes
    assert len(jax.tree.leaves(split_untrained(made)[0])) == n_networks
