"""ITQ against SciPy's Procrustes and a plain SVD: the rotation, what it minimises, and the codes that come of it."""

import itertools

import numpy as np
import pytest
import scipy.linalg

import asymhash as ah
from asymhash.rotation import best_rotation


def components(n=150, k=6, seed=0):
    """Of variances that differ, so that the first rotation is far from the best."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, k)) * np.linspace(3, 0.3, k) + rng.choice([-1, 1], (n, k))
    return values - values.mean(axis=0)


def signs(values):
    return np.where(values >= 0, 1.0, -1.0)


def slow_rotation(values, n_iterations, rng):
    """The paper's two steps: B = sign(V R), then the R that brings V nearest to B."""
    rotation = np.linalg.qr(rng.standard_normal((values.shape[1], values.shape[1])))[0]
    for _ in range(n_iterations):
        rotation = scipy.linalg.orthogonal_procrustes(values, signs(values @ rotation))[0]
    return rotation


@pytest.mark.parametrize("n_iterations", [0, 1, 7])
def test_the_rotation_is_that_of_alternating_signs_and_procrustes(n_iterations):
    values = components()
    found = best_rotation(values, n_iterations, np.random.default_rng(3))
    np.testing.assert_allclose(found.T @ found, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(
        found, slow_rotation(values, n_iterations, np.random.default_rng(3)), atol=1e-9
    )


def test_what_the_signs_lose_falls_with_every_iteration():
    values = components()
    losses = []
    for n_iterations in range(12):
        rotation = best_rotation(values, n_iterations, np.random.default_rng(1))
        rotated = values @ rotation
        losses.append(float(np.linalg.norm(signs(rotated) - rotated)))
    assert all(after <= before + 1e-9 for before, after in itertools.pairwise(losses))
    assert losses[-1] < 0.98 * losses[0]
    assert losses[1] < losses[0] - 1e-3


@pytest.mark.parametrize("k", [4, 7])
def test_codes_are_the_signs_of_rotated_leading_components(k):
    rng = np.random.default_rng(4)
    vectors = (
        rng.standard_normal((120, 7)) * [1, 5, 2, 0.5, 4, 3, 0.2] @ scipy.linalg.qr(np.ones((7, 7)))[0] + 9
    )
    hasher = ah.ITQ(k, n_iterations=20, random_state=8).fit(vectors)
    centred = vectors - vectors.mean(axis=0)
    directions = np.linalg.svd(centred, full_matrices=False)[2][:k].T
    if k == 7:  # the estimator leaves all features as they are
        directions = np.eye(7)
    largest = directions[np.abs(directions).argmax(axis=0), np.arange(k)]
    values = centred @ (directions * np.sign(largest))
    values /= np.sqrt(np.square(values).sum() / len(values))
    wanted = values @ slow_rotation(values, 20, np.random.default_rng(8))
    assert np.abs(wanted).min() > 1e-9
    assert np.array_equal(hasher.database_codes_.to_bools(), wanted >= 0)
    np.testing.assert_allclose(hasher.project(vectors), wanted, atol=1e-9)
    assert not np.array_equal(hasher.set_params(n_iterations=0).fit(vectors).project(vectors), wanted)
