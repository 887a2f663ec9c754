"""Exact neighbours: the same as naive loops, whatever the block size."""

import math
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asymhash.errors import AsymhashError, InvalidArgument
from asymhash.similarity import nearest, neighbors

RULES = ("pooled", "mean_kth")


def naive_distances(queries, items):
    queries, items = queries.astype(np.float64), items.astype(np.float64)
    return np.array([np.sqrt(((x - items) ** 2).sum(axis=1)) for x in queries])


def naive_radius_of(queries, database, average, rule):
    is_self = database is None
    D = naive_distances(queries, queries if is_self else database)
    if rule == "mean_kth":
        return math.fsum(np.sort(D, axis=1)[:, average - 1]) / len(D)
    others = D[~np.eye(len(D), dtype=bool)] if is_self else D.ravel()
    return next(r for r in np.unique(others) if np.count_nonzero(others <= r) / len(D) >= average)


def naive_within(queries, database, radius, rule):
    D = naive_distances(queries, queries if database is None else database)
    similar = radius > D if rule == "mean_kth" else radius >= D
    if database is None:
        np.fill_diagonal(similar, True)
    return np.where(similar, 1, -1)


def naive_nearest(queries, items, k):
    D = naive_distances(queries, items)
    return np.array([sorted(sorted(range(len(items)), key=lambda j: (row[j], j))[:k]) for row in D])


def points(kind: str, n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind == "uniform":
        return rng.random((n, 4)) - 0.5
    if kind == "ties":  # three levels in three dimensions: nearly every distance occurs many times
        return rng.integers(0, 3, (n, 3)).astype(np.uint8)
    if kind == "far":  # far from the origin: the expansion |x|^2 + |y|^2 - 2 x.y would lose all digits
        return rng.standard_normal((n, 6)) * 1e-3 + 1e6
    if kind == "normalised ties":
        levels = rng.integers(0, 3, (n, 5)) - 1.0
        levels[0] = 1.0
        return levels / np.maximum(np.linalg.norm(levels, axis=1, keepdims=True), 1.0)
    return rng.standard_normal((n, 70)).astype(np.float16)


KINDS = ("uniform", "ties", "far", "normalised ties", "float16")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("case", ["self", "more queries", "more items"])
def test_neighbors_equal_naive_loops_for_any_block_size(kind, rule, case):
    queries, database = points(kind, 41), points(kind, 23, seed=1)
    if case == "self":
        database = None
    elif case == "more items":
        queries, database = database, queries
    for average in (1, 5, 20):
        radius = naive_radius_of(queries, database, average, rule)
        wanted = naive_within(queries, database, radius, rule)
        assert np.any(wanted == 1)
        assert np.any(wanted == -1)
        for block_size in (None, 1, 7, 16):
            found = neighbors(queries, database, average=average, rule=rule, block_size=block_size)
            assert found.radius == radius
            assert np.array_equal(found.to_dense(), wanted)
            assert found.origin["average"] == average
            assert neighbors(queries, database, radius=found.radius, rule=rule, block_size=5) == found


@settings(max_examples=60, deadline=None)
@given(
    levels=st.lists(st.lists(st.integers(-3, 3), min_size=2, max_size=2), min_size=3, max_size=14),
    average=st.floats(0.05, 2.0),
    scale=st.sampled_from([1.0, 0.1, 1 / 3, 1e-8, 1e12]),
    block_size=st.integers(1, 15),
)
def test_pooled_radius_is_the_smallest_that_reaches_the_average(levels, average, scale, block_size):
    X = np.array(levels) * scale
    found = neighbors(X, average=average, block_size=block_size)
    assert found.radius == naive_radius_of(X, None, average, "pooled")
    assert np.array_equal(found.to_dense(), naive_within(X, None, found.radius, "pooled"))


def test_an_average_that_is_no_binary_fraction_asks_for_no_more_than_it_says():
    """0.07 * 100 is 7.000000000000001 in float64, and 7 of 100 is 0.07 all the same."""
    assert 0.07 * 100 > 7
    found = neighbors(np.arange(100.0)[:, None], np.zeros((1, 1)), average=0.07)
    assert (found.n_positives, found.radius) == (7, 6.0)


def test_radius_of_the_training_points_carries_over_to_queries():
    X, Q = points("ties", 60), points("ties", 20, seed=5)
    for rule in RULES:
        trained = neighbors(X, average=10, rule=rule)
        found = neighbors(Q, X, radius=trained.radius, rule=rule)
        assert np.array_equal(found.to_dense(), naive_within(Q, X, trained.radius, rule))
        assert found.n_positives > 0
        assert found.origin["strict"] is (rule == "mean_kth")


def test_rules_of_the_paper_and_of_its_code_on_ten_dimensions():
    """FACTS: the code's rule gives about 57 neighbours on 10-D Uniform where 50 were asked for."""
    X = np.random.default_rng(3).random((1000, 10)) - 0.5
    assert neighbors(X, average=50).n_positives - 1000 == 50_000
    assert (neighbors(X, average=50, rule="mean_kth").n_positives - 1000) / 1000 == pytest.approx(57, abs=1.5)


def test_duplicates_are_similar_at_radius_zero_and_only_a_point_itself_when_strict():
    X = np.ones((5, 3))
    assert neighbors(X, radius=0.0).n_positives == 25
    assert neighbors(X, radius=0.0, rule="mean_kth").n_positives == 5
    assert neighbors(X, average=2).radius == 0.0


def test_one_point_is_its_own_neighbor():
    assert neighbors(np.ones((1, 2)), radius=1.0).n_positives == 1


def test_a_huge_radius_takes_everything():
    assert neighbors(points("uniform", 9), radius=1e300).n_positives == 81


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.uint8, np.int32])
def test_dtypes_and_memory_layouts_give_the_same_answer(dtype):
    X = points("ties", 30).astype(dtype)
    wanted = neighbors(X.astype(np.float64), average=4)
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = np.zeros((60, 6), dtype=dtype)
    wide[::2, ::2] = X
    for given_array in (X, np.asfortranarray(X), frozen, wide[::2, ::2], X.tolist()):
        assert neighbors(given_array, average=4) == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_nearest_equals_naive_loops_with_ties_by_smaller_id(kind):
    queries, items = points(kind, 17), points(kind, 33, seed=1)
    for k in (1, 4, 33):
        wanted = naive_nearest(queries, items, k)
        for block_size in (None, 1, 10):
            found = nearest(queries, items, k, block_size=block_size)
            assert np.array_equal(found.indices.reshape(17, k), wanted)


X3 = np.arange(6.0).reshape(3, 2)
REFUSED = [
    (
        {},
        "neighbors: either average or radius must be given, got neither. Give average= or radius=.",
    ),
    (
        {"average": 1, "radius": 1.0},
        "neighbors: either average or radius must be given, got both. Give average= or radius=.",
    ),
    ({"average": 3}, "neighbors: average must be a finite number greater than 0 and of at most 2, got 3."),
    ({"average": 0}, "neighbors: average must be a finite number greater than 0 and of at most 2, got 0."),
    (
        {"average": 4, "rule": "mean_kth"},
        "neighbors: average must be an integer from 1 to 3, got 4.",
    ),
    ({"radius": -1.0}, "neighbors: radius must be a finite number of at least 0, got -1."),
    (
        {"average": 1, "rule": "median"},
        "neighbors: rule must be one of 'pooled', 'mean_kth', got 'median'.",
    ),
    ({"average": 1, "block_size": 0}, "neighbors: block_size must be an integer of at least 1, got 0."),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(InvalidArgument, match=f"^{re.escape(message)}$"):
        neighbors(X3, **arguments)


@pytest.mark.parametrize("exponent", [-340, -500, -700, -1000])
@pytest.mark.parametrize("rule", ["pooled", "mean_kth"])
def test_tiny_vectors_have_the_neighbors_of_larger_ones(exponent, rule):
    """Squares of 2^-540 are 0: the vectors are scaled, which is exact."""
    rng = np.random.default_rng(4)
    points, others = rng.standard_normal((60, 4)).astype(np.float32), rng.standard_normal((20, 4))
    points = points.astype(np.float64)
    scale = 2.0**exponent
    for queries, items in ((points, None), (others, points)):
        wanted = neighbors(queries, items, average=8, rule=rule)
        small = (queries * scale, None if items is None else items * scale)
        found = neighbors(*small, average=8, rule=rule)
        assert found == wanted
        assert 0.1 < found.share_positive < 0.2
        if exponent > -1000:  # the radius of the smallest is rounded, as are the numbers
            assert found.radius == wanted.radius * scale
            assert neighbors(*small, radius=found.radius, rule=rule) == wanted
        assert neighbors(*small, radius=1e300, rule=rule).share_positive == 1.0
    assert nearest(others * scale, points * scale, 3) == nearest(others, points, 3)
    assert dict(neighbors(points * scale, average=8).origin) | {"radius": 0} == {
        **neighbors(points, average=8).origin,
        "radius": 0,
    }


def test_zeros_and_tiny_equal_points_are_all_similar():
    for points in (np.zeros((5, 2)), np.full((5, 2), 1e-200), np.full((5, 2), 5e-324)):
        assert neighbors(points, average=2).share_positive == 1.0
        assert neighbors(points, average=2).radius == 0.0


def test_vectors_too_long_to_square_are_refused():
    message = (
        "neighbors: queries must hold numbers of at most 1e+100 in size, got 1e+200. Scale queries down."
    )
    with pytest.raises(InvalidArgument, match=f"^{re.escape(message)}$"):
        neighbors(X3 * 1e200 / 5, radius=1.0)


@pytest.mark.parametrize("wrong", [np.full((3, 2), np.nan), np.ones(3), np.ones((0, 2)), np.ones((3, 3))])
def test_bad_databases_are_refused(wrong):
    with pytest.raises(AsymhashError, match=r"^neighbors: database "):
        neighbors(X3, wrong, radius=1.0)


MEASURE = """
import resource, numpy as np
from asymhash.similarity import neighbors
X = np.random.default_rng(0).random((6000, 64), dtype=np.float32)
neighbors(X[:50], average=5)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert neighbors(X, average=50, block_size=512).n_positives == 6000 * 51
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_memory_is_that_of_the_blocks_not_of_all_pairs():
    """All pairs of 6,000 points are 275 MiB of float64; the blocks of 512 and the answer take a tenth."""
    run = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 100
