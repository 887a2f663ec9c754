"""Every way to the neighbours gives the same ones: float32 or float64, one pass or several, any sample, any threads."""

import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from asymhash import kernels
from asymhash.similarity import nearest, neighbors, ranks, scanning, selection
from asymhash.similarity.distances import PairDistances

from .test_neighbors import naive_distances, naive_nearest, naive_radius_of, naive_within


def hard_points(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal((n, 12))
    if kind == "heavy tails":  # one tolerance for all pairs is that of the longest vectors
        return (normal * np.exp(2 * rng.standard_normal((n, 1)))).astype(np.float32)
    if kind == "clusters in order":  # near items lie together: samples and bounds are wrong for most queries
        return (normal * 0.01 + 9 * np.sort(rng.integers(0, 6, (n, 1)), axis=0)).astype(np.float32)
    if kind == "far away":
        return (normal + 1e4).astype(np.float32)
    if kind == "duplicates":
        return np.repeat(normal[: n // 5 + 1], 5, axis=0)[:n].astype(np.float32)
    if kind == "huge":
        return normal * 1e30
    if kind == "bytes":
        return rng.integers(0, 256, (n, 12)).astype(np.uint8)
    return normal.astype(np.float32)


KINDS = ["heavy tails", "clusters in order", "far away", "duplicates", "huge", "bytes", "plain"]


def ways(monkeypatch):
    """Take, one after the other, ways that data of this size would not take by themselves."""
    yield "as it comes"
    monkeypatch.setattr(selection, "_MOST_COLLECTED", 0)
    monkeypatch.setattr(selection, "_BINS", 7)
    monkeypatch.setattr(selection, "_FEW_PAIRS", 3)
    yield "histograms"
    monkeypatch.setattr(selection, "_SAMPLE_QUERIES", 1)
    monkeypatch.setattr(selection, "_SAMPLE_ITEMS", 2)
    monkeypatch.setattr(ranks, "_SAMPLE_ITEMS", 3)
    yield "histograms from a useless sample"
    monkeypatch.setattr(selection, "_MOST_COLLECTED", 1 << 25)
    yield "one pass from a useless sample"
    monkeypatch.setattr(ranks, "_SAMPLE_ITEMS", 40)
    monkeypatch.setattr(ranks, "_DEVIATIONS", 0)
    yield "bounds that are too low for every other query"
    for share, name in ((0.0, "float64"), (1.0, "float32")):
        monkeypatch.setattr(selection, "_FEW_UNCERTAIN", share)
        yield name
    monkeypatch.setattr(scanning, "_PANEL_ROWS", 10)
    monkeypatch.setattr(scanning, "_PANEL_NUMBERS", 1)
    monkeypatch.setattr(scanning, "_TILE_ROWS", 4)
    monkeypatch.setattr(scanning, "_STRIP_ITEMS", 9)
    monkeypatch.setattr(ranks, "_PANEL_PAIRS", 150)
    yield "small panels, tiles and strips"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", ["pooled", "mean_kth"])
@pytest.mark.parametrize("is_self", [True, False])
def test_every_way_gives_the_same_neighbors(kind, rule, is_self, monkeypatch):
    queries = hard_points(kind, 61)
    database = None if is_self else hard_points(kind, 97, seed=1)
    wanted = {}
    for average in (1, 8, 30):
        radius = naive_radius_of(queries, database, average, rule)
        wanted[average] = radius, naive_within(queries, database, radius, rule)
    for way in ways(monkeypatch):
        for average, (radius, similar) in wanted.items():
            found = neighbors(queries, database, average=average, rule=rule)
            assert found.radius == radius, way
            assert np.array_equal(found.to_dense(), similar), way
            assert neighbors(queries, database, radius=radius, rule=rule) == found, way


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_gives_the_same_nearest(kind, monkeypatch):
    queries, items = hard_points(kind, 31), hard_points(kind, 83, seed=1)
    wanted = {k: naive_nearest(queries, items, k) for k in (1, 7, 83)}
    for way in ways(monkeypatch):
        for k, expected in wanted.items():
            assert np.array_equal(nearest(queries, items, k).indices.reshape(31, k), expected), way


@pytest.mark.parametrize("kind", KINDS)
def test_squares_keep_their_tolerance(kind):
    queries, items = hard_points(kind, 80), hard_points(kind, 90, seed=1)
    pairs = PairDistances(queries, items, None)
    exact = naive_distances(queries, items) ** 2
    assert (pairs.single is None) == (kind == "huge")
    for precision in filter(None, (pairs.single, pairs.double)):
        squares = pairs.squares(np.arange(80), slice(0, 90), precision)
        assert squares.dtype == precision.dtype
        error = np.abs(squares - exact).max()
        assert error <= precision.tolerance
        assert precision.dtype is np.float64 or error > 0


def test_threads_and_levels_change_nothing():
    X = np.random.default_rng(3).standard_normal((3000, 40)).astype(np.float32)
    results = []
    for n_threads in (1, 2, 3):
        with threadpool_limits(n_threads, user_api="blas"):
            results += [neighbors(X, average=20), nearest(X[:500], X, 9), neighbors(X, average=700)]
    for level in kernels.levels():
        with kernels.force_level(level):
            results += [neighbors(X, average=20), nearest(X[:500], X, 9), neighbors(X, average=700)]
    for start in range(3, len(results), 3):
        assert results[start : start + 3] == results[:3]
        assert [s.radius for s in results[start : start + 3]] == [s.radius for s in results[:3]]


MEASURE = """
import resource, numpy as np
from asymhash.similarity import neighbors
X = np.random.default_rng(0).standard_normal((6000, 32), dtype=np.float32)
neighbors(X[:50], average=5)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert neighbors(X, average=1800).n_positives >= 6000 * 1801
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.parametrize("most", [1 << 25, 1 << 20])
def test_memory_of_a_large_share_is_that_of_the_answer(most):
    """Three pairs in ten are 41 MiB of answer; all pairs are 137 MiB of float32, and 275 of float64."""
    program = f"from asymhash.similarity import selection; selection._MOST_COLLECTED = {most}\n" + MEASURE
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    # Kept for the radius, a pair takes 10 bytes and some more while the answer is made of it.
    assert float(run.stdout) < (450 if most == 1 << 25 else 160)
