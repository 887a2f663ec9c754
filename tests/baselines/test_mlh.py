"""MLH against brute force: the loss-adjusted inference over all codes, the drawing of pairs, the falling bound."""

import itertools
import tracemalloc

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
    first, second, kinds = mlh._Pairs(similarity, 50).draw(share, rng)
    assert first.shape == second.shape == kinds.shape == (50, 100)
    assert np.array_equal(dense[first, second] == 1, kinds == 0)
    shares = (kinds == 0).mean(axis=1)
    assert shares.min() >= least
    assert 0 < shares.mean() < 0.7
    if share:
        drawn = set(zip(first[:, :50].ravel().tolist(), second[:, :50].ravel().tolist(), strict=True))
        assert drawn == set(zip(*(ids.tolist() for ids in np.nonzero(dense == 1)), strict=True))


def test_pairs_take_eight_bytes_for_each_similar_pair_whatever_the_settings():
    similarity = ah.similarity.labels(np.arange(1500) % 2)
    assert similarity.n_positives > 1_000_000
    problem = mlh._Problem(np.zeros((1500, 2)), similarity, 4, 2)
    tracemalloc.start()
    for share in (0.0, 0.5):
        problem.pairs.draw(share, np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * similarity.n_positives
    assert problem.pairs is problem.pairs, "the settings share them"


def slow_codes(z, other_z, losses):
    """The codes of the largest loss plus inner products, tried one by one."""
    scores = CODES @ z[:, None] + (CODES @ other_z)[None, :]
    scores += losses[(CODES[:, None] != CODES[None, :]).sum(axis=2)]
    i, j = np.unravel_index(scores.argmax(), scores.shape)
    return CODES[i], CODES[j], scores.max()


def slow_training(features, dense, setting, draws, n_epochs, n_batches, rows):
    """The paper's algorithm pair by pair: momentum on the mean gradient of a batch and of the decay, falling step."""
    tables = hinge_tables(K, setting.rho)
    velocity, bounds = np.zeros_like(rows), []
    for epoch in range(n_epochs):
        first, second = draws[epoch]
        bounds.append(0.0)
        for batch in range(n_batches):
            slope = setting.weight_decay * rows
            for i, j in zip(first[batch], second[batch], strict=True):
                z, other_z = rows @ features[i], rows @ features[j]
                losses = tables.similar if dense[i, j] == 1 else tables.dissimilar
                g, other_g, best = slow_codes(z, other_z, losses)
                bounds[-1] += best - np.abs(z).sum() - np.abs(other_z).sum()
                slope = slope + np.outer(g - np.where(z >= 0, 1, -1), features[i]) / 100
                slope = slope + np.outer(other_g - np.where(other_z >= 0, 1, -1), features[j]) / 100
            step = 0.1 * (1 - (epoch * n_batches + batch) / (n_epochs * n_batches))
            velocity = 0.9 * velocity - step * slope
            rows = rows + velocity
    return rows, [bound / (100 * n_batches) for bound in bounds]


def test_training_is_that_of_loops():
    rng = np.random.default_rng(2)
    features = rng.standard_normal((14, 3))
    dense = np.where(rng.random((14, 14)) < 0.3, 1, -1)
    problem = mlh._Problem(features, ah.similarity.from_matrix(dense), K, 4)
    setting = mlh._Setting(rho=1, weight_decay=0.3, share_similar=0.4)
    rows, history = mlh._train(problem, setting, 2, np.random.default_rng(5))
    again = np.random.default_rng(5)
    start = 0.1 * again.standard_normal((K, 3))
    draws = [problem.pairs.draw(0.4, again)[:2] for _ in range(2)]
    wanted, bounds = slow_training(features, dense, setting, draws, 2, 4, start)
    assert np.abs(wanted - start).max() > 0.1
    np.testing.assert_allclose(rows, wanted, atol=1e-12)
    np.testing.assert_allclose(history, bounds, rtol=1e-12)


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


def test_the_recipes_have_their_authors_settings(monkeypatch):
    similarity = ah.similarity.labels([0, 1])
    monkeypatch.setattr(mlh, "_lsh_rho", lambda problem, rng: 20)

    def candidates(n_bits, *recipes, **fixed):
        problem = mlh._Problem(np.zeros((2, 1)), similarity, n_bits, 1)
        found = mlh._candidates(recipes, problem, fixed, np.random.default_rng(0))
        return [(setting.rho, setting.weight_decay, setting.share_similar) for setting in found]

    small = [(3, decay, 0.0) for decay in (1e-2, 1e-3, 1e-4, 1e-5)]
    assert candidates(32, "small") == small
    assert candidates(2, "small")[0] == (1, 1e-2, 0.0)
    # max(1, n_bits / 32) with halves rounded up: Python's round gives 2 for 80 bits.
    for n_bits, step in ((32, 1), (47, 1), (48, 2), (64, 2), (80, 3)):
        large = [(20 + shift * step, 1e-3, 0.5) for shift in (-2, -1, 0, 1, 2)]
        assert candidates(n_bits, "large") == large
        assert candidates(n_bits, "small", "large") == small + large
    assert [rho for rho, _, _ in candidates(21, "large")] == [18, 19, 20]
    assert candidates(32, "small", rho=5) == [(5, decay, 0.0) for _, decay, _ in small]
    assert candidates(32, "small", "large", rho=5, weight_decay=0.1) == [(5, 0.1, 0.0), (5, 0.1, 0.5)]


def test_validation_takes_the_setting_of_the_best_held_out_score(monkeypatch):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((40, 40)) < 0.3, 1, -1)
    features = rng.standard_normal((40, 2))
    problem = mlh._Problem(features, ah.similarity.from_matrix(dense), 4, 1)
    settings = [mlh._Setting(rho, 0.1, 0.0) for rho in range(4)]
    scores, trained, measured = [], [], []

    def train(part, setting, n_epochs, rng):
        trained.append((setting.rho, n_epochs, rng.integers(1000)))
        held_in = [int(np.flatnonzero((features == row).all(axis=1))[0]) for row in part.features]
        assert np.array_equal(part.similarity.to_dense(), dense[np.ix_(held_in, held_in)])
        measured.append(held_in)
        return rng.standard_normal((4, 2)), []

    def score(query_codes, codes, truth):
        rest = measured[-1]
        held = sorted(set(range(40)) - set(rest))
        assert (len(query_codes), len(codes)) == (4, 36)
        rows = {tuple(row) for row in truth.to_dense().tolist()}
        assert rows == {tuple(dense[i, rest].tolist()) for i in held}
        return scores[len(trained) - 1]

    monkeypatch.setattr(mlh, "_train", train)
    monkeypatch.setattr(mlh, "average_precision", score)
    for best in range(4):
        scores[:] = [0.2 + 0.1 * (rho == best) - 0.05 * (rho == (best + 1) % 4) for rho in range(4)]
        trained.clear()
        assert mlh._chosen(settings, problem, 7, np.random.default_rng(best)) is settings[best]
        assert [rho for rho, _, _ in trained] == [0, 1, 2, 3]
        assert {n_epochs for _, n_epochs, _ in trained} == {7}
        assert len({seed for _, _, seed in trained}) == 1, "every setting is given the same seed"
    trained.clear()
    assert mlh._chosen(settings[2:3], problem, 7, np.random.default_rng(0)) is settings[2]
    assert not trained, "where there is nothing to choose nothing is trained"


def test_the_model_tells_which_setting_was_chosen(monkeypatch):
    taken = []

    def last(settings, *rest):
        taken.append(settings[-1])
        return settings[-1]

    monkeypatch.setattr(mlh, "_chosen", last)
    for recipe, n_settings in (("small", 0.0), ("large", 0.5), ("best", 0.5)):
        hasher = ah.MLH(8, recipe=recipe, n_epochs=1, n_batches=3, random_state=0).fit(uniform(60))
        assert hasher.model_.provenance["chosen"] == vars(taken[-1])
        assert taken[-1].share_similar == n_settings
    assert len(taken) == 3


def test_a_map_that_leaves_the_numbers_is_one_error_and_keeps_the_old_model(monkeypatch):
    vectors = uniform(60)
    quick = {"recipe": "small", "n_epochs": 3, "n_batches": 100, "random_state": 0}
    hasher = ah.MLH(8, weight_decay=38.0, **quick).fit(vectors)
    before = hasher.model_
    assert np.isfinite(hasher.project(vectors)).all()
    hasher.set_params(weight_decay=38.1)
    with pytest.raises(
        ah.errors.InvalidArgument,
        match=r"^MLH: weight_decay must be a finite number of at least 0 and of at most 38, got 38\.1\.$",
    ):
        hasher.fit(vectors)
    monkeypatch.setattr(mlh, "_MOST_DECAY", 1e9)
    hasher.set_params(weight_decay=1e6)
    with pytest.raises(
        ah.errors.InvalidArgument,
        match=r"^MLH\.fit: the map must stay finite, got NaN or inf in epoch 1 with weight_decay=1e\+06\. Give",
    ):
        hasher.fit(vectors)
    assert hasher.model_ is before


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
