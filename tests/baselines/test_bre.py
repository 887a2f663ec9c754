"""BRE against brute force: the line search over one weight, and the descent that it is part of."""

import itertools
import tracemalloc

import numpy as np
import pytest

import asymhash as ah
from asymhash.baselines import bre
from asymhash.baselines.bre import line_search


def cost_of(move, projection, kernel, first, second, cost):
    bits = projection + move * kernel >= 0
    return float(cost[bits[first] != bits[second]].sum())


def naive_search(projection, kernel, first, second, cost):
    """Lowest cost over a point inside every interval between two thresholds."""
    thresholds = sorted({-p / k for p, k in zip(projection, kernel, strict=True) if k != 0})
    if not thresholds:
        return cost_of(0.0, projection, kernel, first, second, cost)
    points = [thresholds[0] - 1, thresholds[-1] + 1, 0.0]
    points += [(a + b) / 2 for a, b in itertools.pairwise(thresholds)]
    return min(cost_of(point, projection, kernel, first, second, cost) for point in points)


@pytest.mark.parametrize("levels", [0, 3])
def test_line_search_is_the_best_of_all_intervals(levels):
    """With `levels` numbers are few, so thresholds tie and some items have none."""
    rng = np.random.default_rng(levels)
    moved = 0
    for _ in range(300):
        n, n_pairs = int(rng.integers(2, 12)), int(rng.integers(1, 40))
        projection, kernel = rng.standard_normal((2, n))
        if levels:
            projection, kernel = (np.round(levels * x) for x in (projection, kernel))
        first = rng.integers(0, n, n_pairs)
        second = (first + rng.integers(1, n, n_pairs)) % n
        cost = rng.standard_normal(n_pairs)
        move = line_search(projection, kernel, first, second, cost)
        found = cost_of(move, projection, kernel, first, second, cost)
        assert found == pytest.approx(naive_search(projection, kernel, first, second, cost), abs=1e-9)
        moved += move != 0.0
    assert moved > 100


def test_line_search_stays_where_nothing_is_to_gain():
    pair = np.array([0]), np.array([1])
    assert line_search(np.array([1.0, 3.0]), np.array([-1.0, -1.0]), *pair, np.array([1.0])) == 0.0
    assert line_search(np.array([1.0, 3.0]), np.zeros(2), *pair, np.array([-1.0])) == 0.0


def test_the_objective_falls_in_every_sweep_and_is_that_of_the_codes(monkeypatch):
    kept = []
    original = bre._Descent.run

    def run(self, n_sweeps):
        kept.append(self)
        return original(self, n_sweeps)

    monkeypatch.setattr(bre._Descent, "run", run)
    vectors = np.random.default_rng(0).standard_normal((120, 6))
    hasher = ah.BRE(12, random_state=0).fit(vectors)
    history = hasher.history_
    assert len(history) > 10
    assert all(after <= before + 1e-12 for before, after in itertools.pairwise(history))
    assert history[-1] < 0.5 * history[0]
    descent = kept[0]
    signs = hasher.database_codes_.to_signs(int)
    distances = (signs[descent._first] != signs[descent._second]).sum(axis=1)
    assert np.array_equal(distances, descent._distances)
    assert np.square(distances / 12 - descent._target).mean() == pytest.approx(history[-1], rel=1e-12)
    assert not (descent._first == descent._second).any()


def test_targets_are_squared_distances_of_unit_vectors():
    vectors = np.array([[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0], [0.0, -4.0]])
    descent = bre._Descent(bre._unit_rows(vectors.copy()), 2, 2, np.random.default_rng(0))
    wanted = {frozenset((0, 2)): 1.0, frozenset((1, 3)): 1.0}
    assert len(descent._first) >= 4
    for i, j, target in zip(descent._first, descent._second, descent._target, strict=True):
        assert target == pytest.approx(wanted.get(frozenset((int(i), int(j))), 0.5))


@pytest.mark.parametrize("n_bits", [3, 6, 9])
def test_hyperplanes_lie_in_the_components_and_go_through_the_mean(n_bits, monkeypatch):
    """Centre, min(n_bits, d) components, unit length, on lengths and variances that are far from alike."""
    rng = np.random.default_rng(5)
    vectors = rng.standard_normal((200, 6)) * [5, 4, 3, 2, 1, 0.5] * rng.lognormal(0, 1, (200, 1)) + 7
    kept = []
    original = bre._Descent.__init__

    def init(self, *arguments):
        kept.append(self)
        original(self, *arguments)

    monkeypatch.setattr(bre._Descent, "__init__", init)
    hasher = ah.BRE(n_bits, n_sweeps=3, random_state=0).fit(vectors)
    centred = vectors - vectors.mean(axis=0)
    basis = np.linalg.svd(centred, full_matrices=False)[2][:n_bits].T
    rows = hasher.model_.query_map.weights
    outside = rows - rows @ basis @ basis.T
    assert np.abs(outside).max() < 1e-9 * np.abs(rows).max()
    assert np.abs(hasher.project(vectors.mean(axis=0)[None])).max() < 1e-12 * np.abs(rows).max()
    unit = centred @ basis / np.linalg.norm(centred @ basis, axis=1, keepdims=True)
    descent = kept[0]
    squares = np.square(unit[descent._first] - unit[descent._second]).sum(axis=1)
    np.testing.assert_allclose(descent._target, squares / squares.max(), atol=1e-12)
    assert np.array_equal(hasher.database_codes_.to_bools(), descent._bits.T)


def test_squared_distances_do_not_depend_on_the_block_and_take_no_differences_of_all_pairs(monkeypatch):
    rng = np.random.default_rng(0)
    vectors, (first, second) = rng.standard_normal((300, 60)), rng.integers(0, 300, (2, 50_000))
    monkeypatch.setattr(bre, "_BLOCK_VALUES", 1 << 15)
    tracemalloc.start()
    found = bre._squared_distances(vectors, first, second)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000 * 60 * 8 / 10
    np.testing.assert_allclose(found, np.square(vectors[first] - vectors[second]).sum(axis=1), rtol=1e-12)
