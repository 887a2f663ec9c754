"""Packed pairs against dense ones in plain NumPy: whichever way a product is summed, at every instruction level."""

import numpy as np
import pytest

from asymhash import kernels
from asymhash.objective import LOSSES, fit_free_codes, gain_tables, pairs_of
from asymhash.objective import pairs as module
from asymhash.objective.dense_pairs import DensePairs
from asymhash.objective.loss import GainTables
from asymhash.objective.pairs import PackedPairs
from asymhash.similarity import from_matrix

WAYS = ("transform", "list", "mask")


@pytest.fixture(params=kernels.levels())
def forced_level(request):
    with kernels.force_level(request.param):
        yield request.param


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """Force one of the three ways to sum a product."""
    name = request.param
    monkeypatch.setattr(PackedPairs, "is_short", lambda self, pair_cost=1.0: name == "transform")
    monkeypatch.setattr(PackedPairs, "has_masks", name == "mask")
    return name


def problem(m, n, k, *, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    u, v = ((2 * rng.integers(0, 2, (size, k)) - 1).astype(np.int8) for size in (m, n))
    return u, v, from_matrix(np.where(rng.random((m, n)) < share, 1, -1))


def both(u, v, similarity):
    dense, packed = (kind(similarity, max(1, u.shape[1])) for kind in (DensePairs, PackedPairs))
    for bit in range(u.shape[1]):
        for pairs in (dense, packed):
            pairs.add(u[:, bit], v[:, bit])
    return dense, packed


def assert_same_products(dense, packed, k, *, loss="sqrt_logistic"):
    tables = gain_tables(k, 0.75, 0.7, LOSSES[loss])
    wanted, found = dense.gains(tables, exact=True), packed.gains(tables)
    m, n = wanted.shape
    rng = np.random.default_rng(k)
    assert found.shape == (m, n)
    for call, size in (("times", n), ("transposed_times", m)):
        signs = (2 * rng.integers(0, 2, size) - 1).astype(np.int8)
        reals = rng.standard_normal(size)
        # At most half a unit of 16 bits for each pair. Numbers that are no signs have 9 bits: six deviations of that.
        largest, widest = max(np.abs(table).max() for table in tables), np.abs(reals).max()
        half_units = size * largest / 65532
        rounding = 6 * np.sqrt(size) * widest / 1022 / np.sqrt(3) * largest
        for x, error in ((signs, half_units), (reals, half_units * widest + rounding)):
            expected, got = getattr(wanted, call)(x), getattr(found, call)(x)
            scale = np.sqrt(np.mean(np.square(expected)))
            assert scale > error
            np.testing.assert_allclose(got, expected, rtol=0, atol=error)
            if x is signs:
                clear = np.abs(expected) > 1e-7 * scale
                assert clear.any()
                assert np.array_equal(np.sign(got[clear]), np.sign(expected[clear]))


@pytest.mark.parametrize("k", [0, 1, 2, 3, 8, 13, 16])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 33), (40, 31), (70, 65)])
def test_products_of_short_codes(forced_level, way, m, n, k):
    u, v, similarity = problem(m, n, k, share=0.4)
    assert_same_products(*both(u, v, similarity), k)


@pytest.mark.parametrize("k", [17, 31, 32, 33, 63, 64, 65, 127, 128, 200, 300, 1000])
def test_products_of_long_codes(forced_level, way, k):
    if way == "transform":
        pytest.skip("a transform of so many bits has no room")
    u, v, similarity = problem(37, 45, k)
    assert_same_products(*both(u, v, similarity), k)


@pytest.mark.parametrize("k", [7, 20])
def test_products_over_several_blocks_of_items(forced_level, way, k):
    u, v, similarity = problem(9, 4500, k, share=0.1)
    assert_same_products(*both(u, v, similarity), k)


def test_gains_near_zero_have_the_right_sign(way):
    """Gains that nearly cancel: the upper halves of the tables alone would get some signs wrong."""
    rng = np.random.default_rng(0)
    u, v, similarity = problem(400, 2000, 12, share=0.05)
    dense, packed = both(u, v, similarity)
    tables = gain_tables(12, 0.25, 0.7, LOSSES["sqrt_logistic"])
    signs = (2 * rng.integers(0, 2, 2000) - 1).astype(np.int8)
    wanted, found = dense.gains(tables, exact=True).times(signs), packed.gains(tables).times(signs)
    small = np.argsort(np.abs(wanted))[:40]
    assert np.abs(wanted[small]).max() < 0.1 * np.abs(wanted).max()
    np.testing.assert_array_equal(np.sign(found), np.sign(wanted))


def test_the_lower_halves_decide_what_the_upper_ones_cannot(monkeypatch):
    """A table whose differences are all below half a unit of the upper halves."""
    monkeypatch.setattr(PackedPairs, "is_short", lambda self, pair_cost=1.0: False)
    u, v, similarity = problem(60, 64, 6, share=0.02)
    _, packed = both(u, v, similarity)
    table = 1.0 + 1e-6 * np.arange(7)
    signs = np.tile(np.array([1, -1], dtype=np.int8), 32)
    gains = packed.gains(GainTables(table, table))
    distances = (u[:, None] != v[None]).sum(axis=2)
    wanted = table[distances] @ signs
    assert (np.abs(wanted) > 1e-9).any()
    found = gains.times(signs)
    clear = np.abs(wanted) > 1e-7
    np.testing.assert_array_equal(np.sign(found[clear]), np.sign(wanted[clear]))
    np.testing.assert_allclose(found, wanted, atol=64e-9)


@pytest.mark.parametrize("k", [1, 5, 16, 40, 70])
def test_histograms_and_entries(forced_level, k):
    u, v, similarity = problem(30, 30, k)
    dense, packed = both(u, v, similarity)
    for expected, got in zip(dense.histograms(), packed.histograms(), strict=True):
        assert expected.sum() > 0
        np.testing.assert_array_equal(got, expected)
    tables = gain_tables(k, 0.5, 0.6, LOSSES["logistic"])
    wanted, found = dense.gains(tables, exact=True), packed.gains(tables)
    np.testing.assert_allclose(found.diagonal(), wanted.diagonal(), rtol=1e-12)
    for i in range(30):
        np.testing.assert_allclose(found.row(i), wanted.row(i), rtol=1e-12)
        np.testing.assert_allclose(found.column(i), wanted.column(i), rtol=1e-12)


@pytest.mark.parametrize("short", [True, False])
def test_both_ways_to_count_pairs_agree(monkeypatch, short):
    monkeypatch.setattr(PackedPairs, "is_short", lambda self, pair_cost=1.0: short)
    for k in (1, 2, 3, 9, 14):
        u, v, similarity = problem(50, 61, k)
        dense, packed = both(u, v, similarity)
        for expected, got in zip(dense.histograms(), packed.histograms(), strict=True):
            np.testing.assert_array_equal(got, expected)


def test_bits_come_and_go_in_any_order(forced_level):
    rng = np.random.default_rng(3)
    u, v, similarity = problem(21, 34, 70)
    dense, packed = both(u, v, similarity)
    for position in rng.permutation(70)[:25]:
        a, b = ((2 * rng.integers(0, 2, size) - 1).astype(np.int8) for size in (21, 34))
        for pairs in (dense, packed):
            pairs.remove(int(position))
        assert_same_products(dense, packed, 69)
        for pairs in (dense, packed):
            pairs.add(a, b, at=int(position))
    for expected, got in zip(dense.histograms(), packed.histograms(), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_symmetric_similarity_is_kept_once():
    _, _, similarity = problem(5, 5, 1)
    symmetric = from_matrix(np.maximum(similarity.to_dense(), similarity.to_dense().T))
    assert PackedPairs(symmetric, 1).by_item[0] is symmetric.indptr
    assert PackedPairs(similarity, 1).by_item[0] is not similarity.indptr


def test_the_reference_is_forced_by_its_level():
    _, _, similarity = problem(5, 5, 1)
    assert isinstance(pairs_of(similarity, 4), PackedPairs)
    with kernels.force_level("reference"):
        assert kernels.level() == "reference"
        assert isinstance(pairs_of(similarity, 4), DensePairs)
    assert isinstance(pairs_of(similarity, 4), PackedPairs)


def test_the_cheaper_way_is_taken():
    """Short codes of many items by a transform, long ones and small problems by looking up."""
    _, _, small = problem(30, 30, 1)
    large = from_matrix(np.eye(3000, dtype=bool))
    for similarity, k, wanted in ((small, 12, False), (large, 8, True), (large, 30, False)):
        pairs = PackedPairs(similarity, 40)
        pairs.n_bits = k
        assert pairs.is_short() is wanted
    assert small.share_positive > module._DENSE_SHARE
    assert PackedPairs(small, 4).has_masks is (kernels.level() == "avx512")
    assert not PackedPairs(large, 4).has_masks


@pytest.mark.parametrize("k", [4, 20])
def test_free_codes_are_those_of_the_reference(forced_level, k):
    u, start, similarity = problem(80, 50, k, share=0.1)
    given = {"theta": 0.5, "beta": 0.7, "loss": LOSSES["sqrt_logistic"]}
    found = fit_free_codes(u, similarity, start, **given)
    with kernels.force_level("reference"):
        wanted = fit_free_codes(u, similarity, start, **given)
    assert (wanted != start).any()
    np.testing.assert_array_equal(found, wanted)
