"""MLH against brute force: the loss-adjusted inference over all codes, the drawing of pairs, the falling bound."""

import itertools

import numpy as np
import pytest

import asymhash as ah
from asymhash.baselines import mlh
from asymhash.baselines.mlh import adjusted_codes, hinge_tables

K = 4
CODES = np.array(list(itertools.product([-1.0, 1.0], repeat=K)))


def test_adjusted_codes_are_the_best_of_all():
    rng = np.random.default_rng(0)
    z, other_z = rng.standard_normal((2, 60, K))
    z[:5] = other_z[:5]  # an item with itself
    losses = rng.random((60, K + 1)) * rng.choice([0.0, 1.0, 20.0], (60, 1))
    g, other_g, values = adjusted_codes(z, other_z, losses)
    apart = set()
    for pair in range(60):
        every = [
            losses[pair, int((a != b).sum())] + a @ z[pair] + b @ other_z[pair]
            for a, b in itertools.product(CODES, CODES)
        ]
        m = int((g[pair] != other_g[pair]).sum())
        reached = losses[pair, m] + g[pair] @ z[pair] + other_g[pair] @ other_z[pair]
        assert reached == pytest.approx(max(every), rel=1e-12)
        assert values[pair] == pytest.approx(max(every), rel=1e-12)
        apart.add(m)
    assert apart == set(range(K + 1)), "all distances are met"


@pytest.mark.parametrize(("k", "rho"), [(4, 1), (4, 3), (8, 3), (1, 0)])
def test_hinge_tables(k, rho):
    tables = hinge_tables(k, rho)
    for m in range(k + 1):
        assert tables.similar[m] == pytest.approx(max(m - rho, 0) / (k - rho + 1))
        assert tables.dissimilar[m] == pytest.approx(max(rho + 1 - m, 0) / (rho + 1))


@pytest.mark.parametrize(("share", "least"), [(0.0, 0.02), (0.5, 0.5)])
def test_pairs_are_of_the_kind_that_the_similarity_says(share, least):
    rng = np.random.default_rng(1)
    dense = np.where(rng.random((30, 30)) < 0.1, 1, -1)
    similarity = ah.similarity.from_matrix(dense)
    problem = mlh._Problem(np.zeros((30, 2)), similarity, 4, 50)
    first, second, kinds = mlh._Pairs(problem, share).draw(rng)
    assert first.shape == second.shape == kinds.shape == (50, 100)
    assert np.array_equal(dense[first, second] == 1, kinds == 0)
    shares = (kinds == 0).mean(axis=1)
    assert shares.min() >= least
    assert 0 < shares.mean() < 0.7


def uniform(n, seed=0):
    return np.random.default_rng(seed).random((n, 6)) - 0.5


def test_the_bound_falls_and_lies_above_the_loss():
    vectors = uniform(200)
    similarity = ah.similarity.neighbors(vectors, average=20)
    hasher = ah.MLH(8, recipe="small", weight_decay=1e-3, n_epochs=8, n_batches=200, random_state=0).fit(
        vectors, similarity
    )
    history = hasher.history_
    assert len(history) == 8
    assert history[-1] < 0.8 * history[0]
    assert np.mean(history[4:]) < np.mean(history[:4])
    signs = hasher.database_codes_.to_signs(int)
    distances = (8 - signs @ signs.T) // 2
    tables = hinge_tables(8, 3)
    loss = np.where(similarity.to_dense() == 1, tables.similar[distances], tables.dissimilar[distances])
    assert 0 < loss.mean() < history[-1]


def test_validation_chooses_among_the_settings_of_the_recipe():
    vectors = uniform(150)
    chosen = {}
    for recipe in ("small", "large", "best"):
        hasher = ah.MLH(8, recipe=recipe, n_epochs=1, n_validation_epochs=1, n_batches=30, random_state=0)
        chosen[recipe] = hasher.fit(vectors).model_.provenance["chosen"]
    assert chosen["small"]["weight_decay"] in mlh._DECAYS
    assert (chosen["small"]["rho"], chosen["small"]["share_similar"]) == (3, 0.0)
    assert chosen["large"]["share_similar"] == 0.5
    assert chosen["best"] in (chosen["small"], chosen["large"]) or chosen["best"]["rho"] < 8


def test_rho_of_the_large_recipe_is_where_random_hyperplanes_find_thirty_percent():
    vectors = uniform(150)
    similarity = ah.similarity.neighbors(vectors, average=15)
    problem = mlh._Problem(vectors - vectors.mean(axis=0), similarity, 32, 1)
    rho = mlh._lsh_rho(problem, np.random.default_rng(3))
    bits = problem.features @ np.random.default_rng(3).standard_normal((6, 32)) >= 0
    i, j = np.nonzero(similarity.to_dense() == 1)
    distances = (bits[i] != bits[j]).sum(axis=1)
    recalls = [float((distances <= radius).mean()) for radius in range(33)]
    assert rho == sum(recall < 0.3 for recall in recalls)
    assert 0 < rho < 16
