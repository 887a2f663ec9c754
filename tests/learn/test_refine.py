"""All bits refined together: its gradient, its parts on a problem that is small enough to check, and what it gives."""

import numpy as np
import pytest

import asymhash as ah
from asymhash import kernels
from asymhash.learn.choice import Greedy, best_refined
from asymhash.learn.refine import (
    FREE,
    OWN,
    SHARED,
    Pool,
    Refinement,
    Rows,
    _positives,
    _slopes,
    refine,
    refine_a_little,
)
from asymhash.learn.synthetic import SyntheticQueries
from asymhash.objective import LOSSES, pair_loss, scaled
from asymhash.preparation import Preparation
from asymhash.similarity import Similarity
from asymhash.similarity.similarity import stacked
from asymhash.task import Task

SIDES = [FREE, OWN, SHARED]
METHODS = [ah.LinV, ah.LinLin, ah.SymmetricLinear]


def points(n, width=6, seed=0):
    return np.random.default_rng(seed).random((n, width)) - 0.5


def problem_of(side, *, n=200, n_bits=6, draw=True, average=15):
    X = points(n)
    task = Task.check(X, ah.similarity.neighbors(X, average=average), None, where="test")
    preparation = Preparation.learn(X, constant=0.3)
    features = preparation.features(X, np.float32)
    return Refinement(
        side=side,
        real=Pool(features, task.similarity),
        database=features,
        draw=SyntheticQueries.of(task, preparation) if draw else None,
        n_bits=n_bits,
        beta=0.7,
        loss=LOSSES["sqrt_logistic"],
        scale=1.0,
    )


def random_rows(problem, seed=0):
    shape = (problem.n_bits, problem.real.features.shape[1])
    query = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Rows(query, query.copy() if problem.side == OWN else None)


def precision(problem, rows, v):
    u = problem.real.features @ rows.query.T >= 0
    codes = ah.BinaryCodes.from_bools(u), ah.BinaryCodes.from_bools(v.T > 0)
    return ah.average_precision(*codes, problem.real.similarity)


# ---- the gradient


@pytest.mark.parametrize("side", SIDES)
def test_slopes_are_the_derivative_of_the_loss(side):
    problem = problem_of(side, n_bits=7)
    theta = 1.25
    dissimilar, similar = _slopes(problem, theta)
    loss, y = scaled(problem.loss, problem.scale), 7.0 - 2.0 * np.arange(8) - theta
    wanted = np.stack([0.3 * (loss(-y + 1e-5) - loss(-y - 1e-5)), -0.7 * (loss(y + 1e-5) - loss(y - 1e-5))])
    found = np.stack([dissimilar, similar])
    assert found[0].max() < 0 < found[1].min()
    assert np.abs(found).max() == pytest.approx(1.0)
    # Differences over two distances are coarser than the derivative, but point the same way everywhere.
    correlation = np.corrcoef(found.ravel(), wanted.ravel())[0, 1]
    assert abs(correlation) > 0.98


def test_the_whole_gradient_is_that_of_the_loss_summed_over_all_pairs():
    """Moving one u_it towards +1 by a little changes the sum of the pairs' losses by its pull."""
    rng = np.random.default_rng(0)
    n_bits = 5
    U, V = (rng.choice([-1.0, 1.0], (n, n_bits)) for n in (8, 12))
    S = np.where(rng.random((8, 12)) < 0.4, 1, -1)
    tables = pair_loss(n_bits, 0.5, 0.7, LOSSES["sqrt_logistic"])
    entries = [np.gradient(np.asarray(table)) / -2.0 for table in (tables.dissimilar, tables.similar)]
    distance = ((n_bits - U @ V.T) / 2).astype(int)
    G = np.where(S > 0, entries[1][distance], entries[0][distance])
    sim = ah.similarity.from_matrix(S)
    words = [ah.BinaryCodes.from_signs(codes.astype(np.int8)).words for codes in (U, V)]
    found = kernels.training.code_gradients(
        *words,
        (sim.indptr, sim.indices.astype(np.int32)),
        n_bits,
        tuple(entry.astype(np.float32) for entry in entries),
    )
    np.testing.assert_allclose(found, G @ V, atol=1e-5)
    # and G is minus the derivative of a pair's loss by its inner product, as far as differences can tell
    inner = np.flatnonzero((distance > 0).ravel() & (distance < n_bits).ravel())[:10]
    for pair in inner:
        i, j = divmod(int(pair), 12)
        table = tables.similar if S[i, j] > 0 else tables.dissimilar
        d = distance[i, j]
        assert G[i, j] == pytest.approx((table[d + 1] - table[d - 1]) / -4.0)


@pytest.mark.parametrize("items", [None, np.array([1, 2, 5, 8])])
def test_positives_of_a_batch_equal_the_dense_matrix(items):
    S = np.random.default_rng(1).random((7, 9)) < 0.4
    similarity = ah.similarity.from_matrix(np.where(S, 1, -1))
    chosen = np.array([6, 0, 3, 3])
    starts, indices = _positives(similarity, chosen, items)
    width = 9 if items is None else len(items)
    dense = Similarity(starts, indices, (4, width)).to_dense() > 0
    wanted = S[chosen] if items is None else S[chosen][:, items]
    assert dense.any()
    assert np.array_equal(dense, wanted)


# ---- a run


@pytest.mark.parametrize("draw", [True, False], ids=["synthetic", "real"])
@pytest.mark.parametrize("side", SIDES)
def test_it_climbs_from_a_random_start(side, draw):
    problem = problem_of(side, draw=draw)
    start = random_rows(problem)
    rows, v = refine(problem, start, np.random.default_rng(0))
    assert rows.query.shape == start.query.shape
    assert v.shape == (6, 200) and set(np.unique(v)) == {-1, 1}
    np.testing.assert_allclose(np.linalg.norm(rows.query, axis=1), 1.0, rtol=1e-5)
    assert precision(problem, rows, v) > precision(problem, start, problem.first_codes(start)) + 0.1
    if side != FREE:
        assert np.array_equal(v, problem.first_codes(rows))
    assert (rows.database is None) == (side != OWN)


def test_free_codes_gain_nothing_by_a_flip_for_their_own_pool():
    """After the last sweep nearly every item's bits are at their optimum for the queries of the last pool."""
    problem = problem_of(FREE, draw=False)
    rows, v = refine(problem, random_rows(problem), np.random.default_rng(0))
    U = np.where(problem.real.features @ rows.query.T >= 0, 1, -1)
    S = problem.real.similarity.to_dense()
    losses = []
    for theta in np.arange(-8, 8.25, 0.25):
        y = U @ v - theta
        weight = np.where(S > 0, 0.7, 0.3)
        losses.append((float((weight * problem.loss(S * y)).sum()), theta))
    theta = min(losses)[1]

    def item_losses(codes):
        return (np.where(S > 0, 0.7, 0.3) * problem.loss(S * (U @ codes - theta))).sum(axis=0)

    better = 0
    for bit in range(6):
        flipped = v.copy()
        flipped[bit] *= -1
        better += int((item_losses(flipped) < item_losses(v) - 1e-9).sum())
    assert better < 0.03 * v.size


@pytest.mark.parametrize("side", SIDES)
def test_the_reference_level_refines_as_well(side):
    problem = problem_of(side)
    start = random_rows(problem)
    found = precision(problem, *refine(problem, start, np.random.default_rng(0)))
    with kernels.force_level(kernels.REFERENCE):
        wanted = precision(problem, *refine(problem, start, np.random.default_rng(0)))
    assert found == pytest.approx(wanted, abs=0.03)


def test_a_large_database_is_seen_in_parts(monkeypatch):
    problem = problem_of(FREE, n=400)
    monkeypatch.setattr("asymhash.learn.refine._MOST_ITEMS", 100)
    for side in SIDES:
        some = problem_of(side, n=400)
        start = random_rows(some)
        reached = precision(some, *refine(some, start, np.random.default_rng(0)))
        assert reached > precision(some, start, some.first_codes(start)) + 0.08
    assert problem.real.similarity.n_items > 100


# ---- synthetic queries


def test_synthetic_queries_have_the_true_neighbours():
    X = points(150)
    for rule in ("pooled", "mean_kth"):
        similarity = ah.similarity.neighbors(X, average=10, rule=rule)
        task = Task.check(X, similarity, None, where="test")
        draw = SyntheticQueries.of(task, Preparation.learn(X, constant=0.3))
        assert draw is not None
        pool = draw(80, np.random.default_rng(0))
        vectors = (pool.features[:, :-1] * Preparation.learn(X, constant=0.3).scale) + X.mean(axis=0)
        distances = np.linalg.norm(vectors[:, None] - X[None], axis=2)
        near = distances < similarity.radius - 1e-5
        far = distances > similarity.radius + 1e-5
        dense = pool.similarity.to_dense() > 0
        assert near.any() and dense[near].all() and not dense[far].any()
        # each coordinate is one of a training query's
        assert all(np.isclose(vectors[:, [f]], X[:, f]).any(axis=1).all() for f in range(6))
        assert not np.isclose(vectors[:, None], X[None]).all(axis=2).any(axis=1).all()
        some = draw.among(np.arange(0, 150, 3))(20, np.random.default_rng(0))
        assert some.similarity.shape == (20, 50)


@pytest.mark.parametrize(
    "similarity",
    [
        lambda X: ah.similarity.labels(np.arange(len(X)) % 3),
        lambda X: ah.similarity.from_matrix(ah.similarity.neighbors(X, average=9).to_dense()),
        # Made from distances, but of other vectors: here of another scale.
        lambda X: ah.similarity.neighbors(2.0 * X, average=9),
        lambda X: ah.similarity.neighbors(X[:, :3], average=9),
        lambda X: ah.similarity.neighbors(X[::-1], average=9),
    ],
    ids=["labels", "matrix", "scaled", "fewer features", "another order"],
)
def test_without_a_known_distance_there_are_no_synthetic_queries(similarity):
    X = points(90)
    task = Task.check(X, similarity(X), None, where="test")
    preparation = Preparation.learn(X, constant=0.3)
    assert SyntheticQueries.of(task, preparation) is None
    right = Task.check(X, ah.similarity.neighbors(X, average=9), None, where="test")
    assert SyntheticQueries.of(right, preparation) is not None


def test_stacked_similarities():
    one, other = (ah.similarity.labels([0, 1, seed], [1, 0, 1, 2]) for seed in (0, 2))
    both = stacked([one, other])
    assert np.array_equal(both.to_dense(), np.vstack([one.to_dense(), other.to_dense()]))


# ---- the choice


@pytest.mark.parametrize("draw", [True, False], ids=["synthetic", "held out"])
@pytest.mark.parametrize("side", SIDES)
def test_a_bad_descent_is_not_chosen(side, draw):
    """Where the descent left random rows, another start wins; what it learned on a part is asked only without draws."""
    problem = problem_of(side, draw=draw)
    bad = random_rows(problem)
    asked = []

    def descend(part, rng):
        asked.append(part.real.similarity.n_queries)
        return Greedy(bad, part.first_codes(bad))

    found = best_refined(
        problem,
        Greedy(bad, problem.first_codes(bad)),
        descend=descend,
        may_change_scale=False,
        rng=np.random.default_rng(0),
    )
    assert found.scale == 1.0
    assert (
        precision(problem, found.rows, found.codes) > precision(problem, bad, problem.first_codes(bad)) + 0.1
    )
    assert asked == ([] if draw else [160])


def test_a_little_refinement_uses_the_given_pool_alone(monkeypatch):
    problem = problem_of(FREE)
    pool = problem.pool(np.random.default_rng(0))
    monkeypatch.setattr(Refinement, "pool", lambda self, rng: pytest.fail("another pool was drawn"))
    rows, v = refine_a_little(problem, random_rows(problem), pool, np.random.default_rng(0), n_epochs=2)
    assert v.shape == (6, 200) and rows.query.shape == (6, 7)


@pytest.mark.parametrize("method", METHODS)
def test_refined_codes_are_better_for_new_queries(method):
    """Mean over three splits of 10-D Uniform at 16 bits; the symmetric twin has least to gain."""
    gains = []
    for seed in range(3):
        split = ah.evaluate.paper_protocol("uniform10", random_state=seed)
        scores = []
        for refined in (True, False):
            hasher = method(16, refine=refined, random_state=0).fit(split.database, split.train_similarity)
            codes = hasher.encode_queries(split.queries), hasher.database_codes_
            scores.append(ah.average_precision(*codes, split.test_similarity))
        gains.append(scores[0] - scores[1])
    assert np.mean(gains) > {ah.LinV: 0.03, ah.LinLin: 0.0, ah.SymmetricLinear: -0.002}[method]


def test_the_last_record_tells_of_the_refined_code():
    X = points(120)
    seen = []
    hasher = ah.LinV(5, random_state=0).fit(X, callback=seen.append)
    assert [record.n_bits for record in seen] == [1, 2, 3, 4, 5]
    assert tuple(seen) == hasher.history_
    assert seen[-1].start.removeprefix("refined ") in ("greedy", "rotation", "symmetric")
    assert seen[-1].threshold == hasher.model_.threshold
    plain = ah.LinV(5, refine=False, random_state=0).fit(X)
    assert [r.objective for r in seen[:-1]] == [r.objective for r in plain.history_[:-1]]


@pytest.mark.parametrize("method", METHODS)
def test_hopeless_data_are_learned_without_an_error(method):
    """Constant vectors, one feature, two items, more bits than anything: codes come out, whatever they are worth."""
    for X, y in (
        (np.ones((30, 4)), np.arange(30) % 2),
        (points(40, width=1), None),
        (points(2), np.array([0, 1])),
        (points(12), np.arange(12) % 3),
    ):
        with np.errstate(all="raise", under="ignore"):
            hasher = method(9, n_epochs=1, random_state=0).fit(X, y)
        assert len(hasher.encode_queries(X)) == len(X)
