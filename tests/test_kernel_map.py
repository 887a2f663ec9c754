"""A kernel map against loops, and codes that do not depend on what is encoded beside them."""

import math

import numpy as np

from asymhash import BinaryCodes
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
