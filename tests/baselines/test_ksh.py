"""KSH against dense twins: its residual, its smoothed climb, and what is left of the similarity."""

import tracemalloc

import numpy as np
import pytest
import scipy.linalg

import asymhash as ah
from asymhash.baselines import ksh


def problem(n=60, seed=0):
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, 5))
    return vectors, ah.similarity.neighbors(vectors, average=8)


def dense_symmetric(similarity):
    dense = similarity.to_dense().astype(float)
    return (dense + dense.T) / 2


@pytest.mark.parametrize("block", [1, 30, 1 << 20])
@pytest.mark.parametrize("is_symmetric", [True, False])
def test_signed_product_is_that_of_the_dense_matrix(is_symmetric, block, monkeypatch):
    monkeypatch.setattr(ksh, "_BLOCK_PAIRS", block)
    rng = np.random.default_rng(0)
    positive = rng.random((40, 40)) < 0.2
    positive[[0, 7, 8, 39]] = False  # queries without similar items
    if is_symmetric:
        positive |= positive.T
    similarity = ah.similarity.from_matrix(np.where(positive, 1, -1))
    assert (similarity == similarity.transpose()) is is_symmetric
    product, dense = ksh._signed_product(similarity), dense_symmetric(similarity)
    x = rng.standard_normal((40, 3))
    np.testing.assert_allclose(product(x), dense @ x, atol=1e-9)
    np.testing.assert_allclose(product(x[:, 0]), dense @ x[:, 0], atol=1e-9)


def test_similar_pairs_are_not_copied():
    """At 20,000 items in ten classes there are 40 million: 64 bytes each were 2.4 GiB."""
    similarity = ah.similarity.labels(np.arange(2500) % 2)
    assert similarity.n_positives > 3_000_000
    tracemalloc.start()
    product = ksh._signed_product(similarity)
    kept, peak = tracemalloc.get_traced_memory()
    product(np.ones(2500))
    during = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kept < 4 * similarity.n_positives  # the block of ones is 8 MiB
    assert max(peak, during) < 24 * similarity.n_positives  # while the symmetry is tested


def test_every_bit_starts_from_the_spectrum_of_what_the_others_left(monkeypatch):
    """Beside SciPy's generalised eigenvectors of the dense residual, scaled to |K a|^2 = n."""
    vectors, similarity = problem(80)
    kernels = ksh.gaussian_kernel(vectors, vectors[:15], 5.0)
    kernels -= kernels.mean(axis=0)
    seen = []
    original = ksh._smoothed_ascent

    def ascent(climbed, residual, start):
        seen.append((np.column_stack([residual(unit) for unit in np.eye(80)]), start))
        return original(climbed, residual, start)

    monkeypatch.setattr(ksh, "_smoothed_ascent", ascent)
    weights, _ = ksh._learn_bits(kernels, similarity, 4)
    dense = 4 * dense_symmetric(similarity)
    directions = []
    for row, (residual, start) in zip(weights, seen, strict=True):
        np.testing.assert_allclose(residual, dense, atol=1e-9)
        values, vectors_ = scipy.linalg.eigh(kernels.T @ dense @ kernels, kernels.T @ kernels)
        assert values[-1] > 1.01 * values[-2], "the first one is clear"
        wanted = vectors_[:, -1] * np.sqrt(80)
        same, opposite = (np.abs(kernels @ (start - sign * wanted)).max() for sign in (1, -1))
        assert min(same, opposite) < 1e-6
        directions.append(kernels @ start / np.sqrt(80))
        bit = np.where(kernels @ row >= 0, 1.0, -1.0)
        dense -= np.outer(bit, bit)
    alike = np.abs(np.array(directions) @ np.transpose(directions))[~np.eye(4, dtype=bool)]
    assert alike.max() < 0.9, "the starts of different bits differ"


def test_a_climb_is_kept_only_where_the_signs_are_better(monkeypatch):
    vectors, similarity = problem(80)
    kernels = ksh.gaussian_kernel(vectors, vectors[:15], 5.0)
    kernels -= kernels.mean(axis=0)
    dense = 2 * dense_symmetric(similarity)
    rng = np.random.default_rng(3)

    def value(row):
        bit = np.where(kernels @ row >= 0, 1.0, -1.0)
        return bit @ dense @ bit

    seen = {}
    for wanted in ("better", "worse"):

        def ascent(climbed, residual, start, wanted=wanted):
            if wanted not in seen:
                others = start + 0.5 * np.linalg.norm(start) * rng.standard_normal((300, 15)) / 4
                gains = np.array([value(row) for row in others]) - value(start)
                reached = others[gains.argmax() if wanted == "better" else gains.argmin()]
                seen[wanted] = (start, reached, value(reached) - value(start))
            return start if seen[wanted][0] is not start else seen[wanted][1]

        monkeypatch.setattr(ksh, "_smoothed_ascent", ascent)
        weights, _ = ksh._learn_bits(kernels, similarity, 2)
        start, reached, gain = seen[wanted]
        assert gain > 0 if wanted == "better" else gain < 0
        assert np.array_equal(weights[0], reached if wanted == "better" else start)


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
