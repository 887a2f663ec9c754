"""LSH against its law: two items differ in a bit with probability angle / pi, seen from the mean."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.stats

import asymhash as ah


def example(n=60, d=6, seed=0):
    """Far from the origin, of features whose variances differ: neither centring nor whitening goes unnoticed."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) * np.linspace(0.2, 3, d) + 5


def test_bits_differ_with_probability_angle_over_pi():
    vectors, n_bits = example(), 1024
    bits = ah.LSH(n_bits, random_state=1).fit(vectors).database_codes_.to_bools()
    centred = vectors - vectors.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    i, j = np.triu_indices(len(vectors), 1)
    chance = np.arccos((unit[i] * unit[j]).sum(axis=1)) / np.pi
    assert chance.min() < 0.1
    assert chance.max() > 0.9
    off = ((bits[i] != bits[j]).mean(axis=1) - chance) / np.sqrt(chance * (1 - chance) / n_bits)
    assert np.abs(off).max() < 5  # of 1770 pairs, in standard deviations of the sampling
    assert 0.8 < np.sqrt(np.square(off).mean()) < 1.2


def test_planes_go_through_the_mean_and_normals_are_normal():
    vectors = example(d=40)
    hasher = ah.LSH(256, random_state=2).fit(vectors)
    rows = hasher.model_.query_map.weights
    assert np.abs(hasher.project(vectors.mean(axis=0)[None])).max() < 1e-12 * np.abs(rows).max()
    # Directions alone count: the one scale of all numbers is that of the vectors.
    size = np.sqrt(np.square(vectors - vectors.mean(axis=0)).sum(axis=1).mean())
    assert scipy.stats.kstest(rows.ravel() * size, "norm").pvalue > 0.01
    assert np.abs(np.corrcoef(rows.T)[~np.eye(40, dtype=bool)]).max() < 0.3, (
        "features are drawn independently"
    )
    assert np.abs(np.corrcoef(rows)[~np.eye(256, dtype=bool)]).max() < 0.8, "and so are bits"


def test_with_pca_the_normals_lie_in_the_leading_components():
    vectors = example(d=8)
    rows = ah.LSH(64, pca=3, random_state=3).fit(vectors).model_.query_map.weights
    basis = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)[2][:3]
    within = rows @ basis.T
    np.testing.assert_allclose(within @ basis, rows, atol=1e-12)
    size = np.sqrt(np.square((vectors - vectors.mean(axis=0)) @ basis.T).sum(axis=1).mean())
    assert scipy.stats.kstest(within.ravel() * size, "norm").pvalue > 0.01


def test_a_long_fit_keeps_one_model_and_gives_the_shorter_ones():
    """One model for each of 1024 lengths took 1.3 GB here."""
    vectors = example(n=50, d=300)
    tracemalloc.start()
    hasher = ah.LSH(1024, random_state=0).fit(vectors)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 1024 * 300 * 8
    assert len(pickle.dumps(hasher)) < 2 * 1024 * 300 * 8
    for n_bits in (1, 64, 65, 700, 1024):
        short = hasher.truncate(n_bits)
        assert short.model_.n_bits == short.n_bits == n_bits
        assert short.database_codes_ == hasher.database_codes_.first_bits(n_bits)
        assert np.array_equal(short.model_.query_map.weights, hasher.model_.query_map.weights[:n_bits])
    assert short.truncate(3).database_codes_ == hasher.database_codes_.first_bits(3)
    with pytest.raises(ah.errors.InvalidArgument, match=r"n_bits must be an integer from 1 to 700, got 701"):
        hasher.truncate(700).truncate(701)
