"""A kernel map against loops, and codes that do not depend on what is encoded beside them."""

import math
import tracemalloc

import numpy as np
import pytest

import asymhash as ah
from asymhash import BinaryCodes, kernel_map
from asymhash.kernel_map import KernelMap, gaussian_kernel


def example(n_anchors=9, n_features=4, n_bits=6, seed=0):
    rng = np.random.default_rng(seed)
    return KernelMap(
        rng.standard_normal((n_anchors, n_features)),
        2.5,
        rng.standard_normal((n_bits, n_anchors)),
        0.1 * rng.standard_normal(n_bits),
    )


def naive_projection(encoder, vector):
    kernels = [
        math.exp(-sum((float(x) - a) ** 2 for x, a in zip(vector, anchor, strict=True)) / (2 * encoder.width))
        for anchor in encoder.anchors
    ]
    return [
        math.fsum(w * k for w, k in zip(row, kernels, strict=True)) + b
        for row, b in zip(encoder.weights, encoder.offset, strict=True)
    ]


def test_projection_is_that_of_loops():
    encoder = example()
    vectors = np.random.default_rng(1).standard_normal((20, 4)) * 2
    wanted = [naive_projection(encoder, vector) for vector in vectors]
    np.testing.assert_allclose(encoder.project(vectors), wanted, atol=1e-12)
    assert encoder.encode(vectors) == BinaryCodes.from_bools(np.array(wanted) >= 0)
    assert 10 < (np.array(wanted) >= 0).sum() < 110
    assert (encoder.n_bits, encoder.n_features) == (6, 4)


def test_far_from_the_origin_nothing_is_lost():
    near = example()
    far = KernelMap(near.anchors + 1e6, near.width, near.weights, near.offset)
    vectors = np.random.default_rng(2).standard_normal((50, 4))
    np.testing.assert_allclose(far.project(vectors + 1e6), near.project(vectors), atol=1e-7)


def test_codes_do_not_depend_on_the_block(monkeypatch):
    """Vectors whose projections are zero but for rounding: the sum of both anchors' kernels cancels."""
    anchors = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    encoder = KernelMap(anchors, 1.0, np.array([[1.0, -1.0]]), np.zeros(1))
    vectors = np.random.default_rng(3).standard_normal((300, 3))
    vectors[:, 0] = 0.0
    vectors[::3, 0] = 1e-17
    together = encoder.encode(vectors)
    alone = BinaryCodes.concatenate([encoder.encode(vectors[i : i + 1]) for i in range(300)])
    assert together == alone
    monkeypatch.setattr("asymhash.kernel_map._BLOCK_VALUES", 7)
    assert encoder.encode(vectors) == together
    assert (together.to_signs()[1::3] == 1).all(), "zero counts as +1"


def test_gaussian_kernel_of_a_point_with_itself_is_one():
    points = np.random.default_rng(4).standard_normal((5, 3)) + 10
    assert (np.diag(gaussian_kernel(points, points, 0.5)) <= 1.0).all()
    np.testing.assert_allclose(np.diag(gaussian_kernel(points, points, 0.5)), 1.0, atol=1e-12)


OPEN = {"far vectors": (1.0, 1e9), "a narrow width": (1e-13, 1.0)}


@pytest.mark.parametrize("case", OPEN)
def test_where_every_sign_is_open_projections_are_still_those_of_loops(case, monkeypatch):
    """And an item's kernels are computed once for all of its bits."""
    width, size = OPEN[case]
    encoder = example()
    encoder = KernelMap(encoder.anchors, width, encoder.weights, encoder.offset)
    vectors = size * np.random.default_rng(5).standard_normal((40, 4))
    vectors[:9] = encoder.anchors
    asked = []
    original = KernelMap._by_definition

    def by_definition(self, block, items, bits):
        asked.append((items, bits))
        return original(self, block, items, bits)

    monkeypatch.setattr(KernelMap, "_by_definition", by_definition)
    wanted = np.array([naive_projection(encoder, vector) for vector in vectors])
    for values in (1, 200, 1 << 20):
        monkeypatch.setattr(kernel_map, "_DIRECT_VALUES", values)
        found = encoder.project(vectors)
        assert len(asked[-1][0]) > 40, "more bits than items"
        np.testing.assert_allclose(found, wanted, atol=1e-12)
        assert encoder.encode(vectors) == BinaryCodes.from_bools(found >= 0)


def test_an_open_item_takes_one_row_of_kernels_and_some_bits_of_some_items_the_right_ones(monkeypatch):
    encoder = example(n_bits=70)
    vectors = np.random.default_rng(6).standard_normal((12, 4))
    items = np.array([0, 0, 3, 3, 3, 11])
    bits = np.array([1, 69, 0, 1, 2, 64])
    computed = []
    original = np.exp
    monkeypatch.setattr(
        kernel_map.np, "exp", lambda values: computed.append(values.shape[0]) or original(values)
    )
    found = encoder._by_definition(vectors, items, bits)
    assert sum(computed) == 3
    wanted = [naive_projection(encoder, vectors[i])[t] for i, t in zip(items, bits, strict=True)]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert encoder._by_definition(vectors, items[:0], bits[:0]).shape == (0,)


def test_bits_without_weights_are_their_offsets_and_need_no_definition(monkeypatch):
    weights = example(n_bits=3).weights.copy()
    weights[[0, 2]] = 0.0
    encoder = KernelMap(example().anchors, 1e-13, weights, np.array([0.0, 0.5, -1e-300]))
    asked = []
    original = KernelMap._by_definition

    def by_definition(self, block, items, bits):
        asked.extend(bits.tolist())
        return original(self, block, items, bits)

    monkeypatch.setattr(KernelMap, "_by_definition", by_definition)
    projected = encoder.project(np.random.default_rng(7).standard_normal((20, 4)))
    assert (projected[:, 0] == 0.0).all()
    assert (projected[:, 2] == -1e-300).all()
    assert set(asked) == {1}


def test_constant_data_costs_no_definitions(monkeypatch):
    calls = []
    original = KernelMap._by_definition

    def by_definition(self, block, items, bits):
        calls.append(items.size)
        return original(self, block, items, bits)

    monkeypatch.setattr(KernelMap, "_by_definition", by_definition)
    hasher = ah.KSH(8, random_state=0).fit(np.full((50, 6), 3.0), np.arange(50) % 2)
    assert len(hasher.database_codes_) == 50
    assert calls
    assert max(calls) == 0


def test_encoding_does_not_hold_the_projection():
    encoder = example(n_bits=512)
    vectors = np.random.default_rng(8).standard_normal((20_000, 4))
    tracemalloc.start()
    codes = encoder.encode(vectors)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000 * 512 * 8 * 0.8
    assert codes[7] == encoder.encode(vectors[7:8])
