"""KSH against dense twins: its residual, its smoothed climb, and what is left of the similarity."""

import numpy as np
import pytest

import asymhash as ah
from asymhash.baselines import ksh


def problem(n=60, seed=0):
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, 5))
    return vectors, ah.similarity.neighbors(vectors, average=8)


def dense_symmetric(similarity):
    dense = similarity.to_dense().astype(float)
    return (dense + dense.T) / 2


def test_signed_product_is_that_of_the_dense_matrix():
    rng = np.random.default_rng(0)
    similarity = ah.similarity.from_matrix(np.where(rng.random((40, 40)) < 0.2, 1, -1))  # not symmetric
    product, dense = ksh._signed_product(similarity), dense_symmetric(similarity)
    x = rng.standard_normal((40, 3))
    np.testing.assert_allclose(product(x), dense @ x, atol=1e-9)
    np.testing.assert_allclose(product(x[:, 0]), dense @ x[:, 0], atol=1e-9)


def test_the_climb_raises_the_smoothed_objective():
    vectors, similarity = problem()
    kernels = ksh.gaussian_kernel(vectors, vectors[:20], 5.0)
    kernels -= kernels.mean(axis=0)
    dense = 8 * dense_symmetric(similarity)

    def smoothed(row):
        smooth = 2 / (1 + np.exp(-kernels @ row)) - 1
        return float(smooth @ dense @ smooth)

    start = np.random.default_rng(1).standard_normal(20)
    reached = ksh._smoothed_ascent(kernels, lambda x: dense @ x, start)
    assert smoothed(reached) > smoothed(start) + 0.1 * abs(smoothed(start))
    slopes = [
        (smoothed(reached + 1e-5 * unit) - smoothed(reached - 1e-5 * unit)) / 2e-5 for unit in np.eye(20)
    ]
    first = [(smoothed(start + 1e-5 * unit) - smoothed(start - 1e-5 * unit)) / 2e-5 for unit in np.eye(20)]
    assert np.linalg.norm(slopes) < 0.5 * np.linalg.norm(first)


def test_what_is_left_is_the_distance_of_codes_and_similarity_and_falls():
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 120)
    vectors = rng.standard_normal((120, 5)) + 2 * np.eye(5)[classes]
    similarity = ah.similarity.labels(classes)
    hasher = ah.KSH(6, n_anchors=40, random_state=0).fit(vectors, similarity)
    signs, dense = hasher.database_codes_.to_signs(float), dense_symmetric(similarity)
    for length, left in enumerate(hasher.history_, start=1):
        rest = 6 * dense - signs[:, :length] @ signs[:, :length].T
        assert left == pytest.approx(np.square(rest).sum() / (6 * 120) ** 2, rel=1e-9)
    assert len(hasher.history_) == 6
    assert np.all(np.diff(hasher.history_) < 0)
    assert hasher.history_[-1] < 0.5


def test_the_width_is_the_mean_squared_distance():
    rng = np.random.default_rng(0)
    vectors, anchors = rng.standard_normal((30, 4)) + 100, rng.standard_normal((7, 4)) + 100
    wanted = np.mean([np.square(x - a).sum() for x in vectors for a in anchors])
    assert ksh._width(vectors, anchors) == pytest.approx(wanted, rel=1e-9)
    assert ksh._width(np.ones((3, 2)), np.ones((2, 2))) == 1.0


def test_duplicated_anchors_do_no_harm():
    vectors, similarity = problem(40)
    twice, y = np.repeat(vectors, 2, axis=0), np.arange(80) % 2
    assert similarity.n_positives > 0
    codes = ah.KSH(4, random_state=0).fit(twice, ah.similarity.neighbors(twice, average=10)).database_codes_
    assert codes[y == 0] == codes[y == 1]
