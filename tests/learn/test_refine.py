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
    _pulls,
    _slopes,
    _Thresholds,
    refine,
    refine_a_little,
)
from asymhash.learn.synthetic import SyntheticQueries
from asymhash.objective import LOSSES, scaled
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


def own_list(X, origin):
    made = ah.similarity.neighbors(X, average=9)
    return Similarity(made.indptr, made.indices, made.shape, origin=origin)


def random_rows(problem, seed=0):
    shape = (problem.n_bits, problem.real.features.shape[1])
    query = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Rows(query, query.copy() if problem.side == OWN else None)


def precision(problem, rows, v):
    u = problem.real.features @ rows.query.T >= 0
    codes = ah.BinaryCodes.from_bools(u), ah.BinaryCodes.from_bools(v.T > 0)
    return ah.average_precision(*codes, problem.real.similarity)


# ---- the gradient


def test_slopes_are_the_derivative_of_the_loss():
    problem = problem_of(FREE, n_bits=7)
    theta = 1.25
    found = np.stack(_slopes(problem, theta))  # dissimilar, similar
    loss, y = scaled(problem.loss, problem.scale), 7.0 - 2.0 * np.arange(8) - theta
    wanted = np.stack([0.3 * (loss(-y - 1e-5) - loss(-y + 1e-5)), 0.7 * (loss(y - 1e-5) - loss(y + 1e-5))])
    assert found[0].max() < 0 < found[1].min()
    assert np.abs(found).max() == pytest.approx(1.0)
    # Differences over two distances are coarser than the derivative, but point the same way everywhere.
    # Rising inner products cost dissimilar pairs and help similar ones.
    towards = np.stack([-np.abs(wanted[0]), np.abs(wanted[1])])
    assert np.corrcoef(found.ravel(), towards.ravel())[0, 1] > 0.98


def test_pulls_tell_what_a_flip_of_a_bit_does_to_the_loss():
    """A bit that is pulled the other way gains by flipping, as the sum over all pairs says."""
    problem = problem_of(FREE, n=80, n_bits=6)
    S = problem.real.similarity.to_dense()
    rng = np.random.default_rng(0)
    U, V = (rng.choice([-1, 1], (80, 6)).astype(np.int8) for _ in range(2))
    theta = 0.5

    def losses(codes):
        return (np.where(S > 0, 0.7, 0.3) * problem.loss(S * (codes @ V.T.astype(float) - theta))).sum(axis=1)

    words = [ah.BinaryCodes.from_signs(codes).words for codes in (U, V)]
    positives = problem.real.similarity.indptr, problem.real.similarity.indices
    pulls = _pulls(*words, positives, _slopes(problem, theta))
    falls = np.empty((80, 6))
    for bit in range(6):
        flipped = U.astype(float)
        flipped[:, bit] *= -1
        falls[:, bit] = losses(U.astype(float)) - losses(flipped)
    assert np.corrcoef((-pulls * U).ravel(), falls.ravel())[0, 1] > 0.97


def test_the_way_back_through_the_sign_is_the_derivative_of_a_tanh():
    rng = np.random.default_rng(0)
    features, rows = rng.standard_normal((30, 4)), rng.standard_normal((3, 4))
    pulls = rng.standard_normal((30, 3))
    steepness = 1.5 / np.abs(features @ rows.T).mean(axis=0)

    def height(at):
        return float((pulls * np.tanh(features @ at.T * steepness)).sum())

    thresholds = _Thresholds(features.astype(np.float32), rows.astype(np.float32))
    found = thresholds.ascent(pulls.astype(np.float32))
    wanted = np.empty_like(rows)
    for place in np.ndindex(rows.shape):
        step = np.zeros_like(rows)
        step[place] = 1e-5
        wanted[place] = (height(rows + step) - height(rows - step)) / 2e-5
    assert np.abs(wanted).max() > 0.5
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)
    assert np.array_equal(thresholds.words, ah.BinaryCodes.from_bools(features @ rows.T >= 0).words)


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


@pytest.mark.parametrize("side", SIDES)
def test_a_large_database_is_seen_in_parts(side, monkeypatch):
    monkeypatch.setattr("asymhash.learn.refine._MOST_ITEMS", 100)
    seen = []

    def pulls(queries, items, similar, slopes):
        seen.append((len(queries), len(items)))
        return _pulls(queries, items, similar, slopes)

    monkeypatch.setattr("asymhash.learn.refine._pulls", pulls)
    problem = problem_of(side, n=400)
    start = random_rows(problem)
    reached = precision(problem, *refine(problem, start, np.random.default_rng(0)))
    assert reached > precision(problem, start, problem.first_codes(start)) + 0.08
    assert len(seen) > 20 and all(min(sizes) <= 100 or 100 in sizes for sizes in seen)
    assert {100} <= {size for sizes in seen for size in sizes}


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
        # Nothing to tell by: hardly any point has a neighbour but itself.
        lambda X: ah.similarity.neighbors(X / np.linalg.norm(X, axis=1, keepdims=True), average=0.05),
        # Somebody's own list, which says what it likes of where it is from.
        lambda X: own_list(X, {"kind": "neighbors", "radius": 0.5}),
        lambda X: own_list(X, {"kind": "neighbors", "radius": 0.5, "rule": "mine"}),
        lambda X: own_list(X, {"kind": "neighbors", "radius": -1.0, "rule": "pooled"}),
    ],
    ids=[
        "labels",
        "matrix",
        "scaled",
        "fewer",
        "another order",
        "too few",
        "no rule",
        "no such rule",
        "radius",
    ],
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


def test_a_good_descent_is_kept_and_a_remembering_one_is_not():
    """The judges are new queries: a code that fits the real ones by heart does not impress them."""
    problem = problem_of(FREE, n=300)
    rows, codes = refine(problem, random_rows(problem), np.random.default_rng(0))
    good = Greedy(rows, codes)
    # Few queries of many items, and codes that are at their optimum for these queries alone.
    X, Q = points(3000, seed=2), points(150, seed=3)
    similarity = ah.similarity.neighbors(Q, X, average=6)
    hasher = ah.LinV(24, random_state=0).fit(X, similarity, queries=Q)
    plain = ah.LinV(24, refine=False, random_state=0).fit(X, similarity, queries=Q)
    new = points(800, seed=4)
    truth = ah.similarity.neighbors(new, X, radius=similarity.radius)
    found, greedy = (
        ah.average_precision(fit.encode_queries(new), fit.database_codes_, truth) for fit in (hasher, plain)
    )
    assert found > 1.2 * greedy
    chosen = best_refined(
        problem, good, descend=lambda part, rng: good, may_change_scale=False, rng=np.random.default_rng(0)
    )
    assert precision(problem, chosen.rows, chosen.codes) > precision(problem, rows, codes) - 0.02


def test_the_chosen_unit_of_the_loss_is_part_of_the_model():
    X, y = points(200), np.arange(200) % 5
    scales = {ah.LinV(6, random_state=seed).fit(X, y).model_.objective.scale for seed in range(6)}
    assert scales <= {0.5, 1.0, 2.0} and len(scales) > 1
    given = ah.LinV(6, loss_scale=1.5, random_state=0).fit(X, y)
    assert given.model_.objective.scale == 1.5


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32])
@pytest.mark.parametrize("method", METHODS)
def test_vectors_of_any_kind_and_other_queries(method, dtype):
    X, Q = ((points(n, seed=n) * 200 + 100).astype(dtype) for n in (160, 60))
    hasher = method(6, n_epochs=1, random_state=0).fit(X, queries=Q)
    truth = ah.similarity.neighbors(Q, X, average=8)
    assert (
        ah.average_precision(hasher.encode_queries(Q), hasher.database_codes_, truth)
        > 2 * truth.share_positive
    )


def test_a_whole_truncation_is_the_fit_itself():
    hasher = ah.LinV(5, random_state=0).fit(points(60))
    assert hasher.truncate(5).model_ is hasher.model_
    with pytest.raises(
        ah.errors.UnsupportedOperation, match=r"n_bits=3, or with refine=False, whose fits hold"
    ):
        hasher.truncate(3)
    assert not hasher.nests and ah.LinV(refine=False).nests and ah.LSH().nests


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
