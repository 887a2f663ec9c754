"""The pieces of the descent, each against brute force or dense linear algebra."""

import itertools

import numpy as np
import pytest

from asymhash.learn.classify import RowClassifier, signs_of
from asymhash.learn.families import Bit, SharedFree, SharedLinear, TwoSides
from asymhash.learn.sides import FreeSide, HalfBit, LinearSide
from asymhash.objective import LOSSES, gain_tables, pairs_of
from asymhash.similarity import from_matrix


class DenseGains:
    """M held as a matrix: the obviously right twin of Gains."""

    def __init__(self, matrix):
        self.matrix = matrix
        self.shape = matrix.shape

    def times(self, v):
        return self.matrix @ v

    def transposed_times(self, u):
        return self.matrix.T @ u

    def row(self, i):
        return self.matrix[i]

    def column(self, j):
        return self.matrix[:, j]

    def diagonal(self):
        return np.diag(self.matrix)


def rng_of(seed=0):
    return np.random.default_rng(seed)


def features_of(n_items, width=3, seed=0):
    features = rng_of(seed).standard_normal((n_items, width))
    features[:, -1] = 0.3
    return features


def score(bit, matrix):
    return float(bit.u @ matrix @ bit.v)


def test_zero_counts_as_plus_one():
    assert signs_of(np.array([-1.0, -0.0, 0.0, 2.0])).tolist() == [-1, 1, 1, 1]


@pytest.mark.parametrize("seed", range(5))
def test_a_row_learns_what_a_hyperplane_can_separate(seed):
    features = features_of(200, 4, seed)
    wanted = signs_of(features @ np.array([1.0, -2.0, 0.5, 1.0]))
    gain = wanted * rng_of(seed).uniform(0.5, 2.0, 200)
    start = rng_of(seed + 100).standard_normal(4)
    row = RowClassifier(features, 10).learn(gain, start, rng_of(seed))
    reached = signs_of(features @ row) @ gain
    assert reached > signs_of(features @ start) @ gain
    assert reached > 0.95 * np.abs(gain).sum()


def test_a_row_obeys_the_weights():
    """Two groups that no hyperplane through the origin serves both: the heavy one wins."""
    features = np.repeat([[1.0, 0.3]], 60, axis=0)
    gain = np.r_[np.full(20, 5.0), np.full(40, -1.0)]
    row = RowClassifier(features, 5).learn(gain, np.array([-1.0, 0.0]), rng_of())
    assert np.all(signs_of(features @ row) == 1)


@pytest.mark.parametrize("start", [np.zeros(3), np.array([3.0, 0.0, 4.0])])
def test_without_gain_the_start_stays(start):
    row = RowClassifier(features_of(20), 3).learn(np.zeros(20), start, rng_of())
    assert np.array_equal(signs_of(row), signs_of(start))
    assert np.isfinite(row).all()


@pytest.mark.parametrize("seed", range(8))
def test_a_free_bit_is_the_optimum(seed):
    gain = rng_of(seed).standard_normal(8)
    gain[2] = 0.0
    old = HalfBit(signs_of(rng_of(seed + 50).standard_normal(8)))
    new = FreeSide(8).improve(old, gain, rng_of())
    best = max(np.dot(gain, signs) for signs in itertools.product([-1, 1], repeat=8))
    assert gain @ new.signs == pytest.approx(best)
    assert new.signs[2] == old.signs[2]
    assert new.signs.dtype == np.int8


@pytest.mark.parametrize("seed", range(20))
def test_a_linear_bit_never_loses(seed):
    side = LinearSide(features_of(30, seed=seed), n_epochs=1)
    half = side.random(rng_of(seed))
    gain = rng_of(seed + 1).standard_normal(30)
    better = side.improve(half, gain, rng_of(seed))
    assert gain @ better.signs >= gain @ half.signs
    assert np.array_equal(better.signs, signs_of(side.features @ better.row))
    best = side.improve(better, better.signs.astype(float), rng_of(seed))
    assert np.array_equal(best.signs, better.signs), "what is best already stays"


def test_projection_is_that_on_the_column_space():
    features = features_of(20, 4)
    features[:, 1] = 2 * features[:, 0]  # rank 3
    side = LinearSide(features, 1)
    direction = rng_of(1).standard_normal(20)
    left = np.linalg.svd(features)[0][:, :3]
    np.testing.assert_allclose(side.project(direction), left @ (left.T @ direction), atol=1e-9)
    np.testing.assert_allclose(side.project(side.project(direction)), side.project(direction), atol=1e-9)
    assert np.array_equal(side.threshold(direction).signs, signs_of(left @ (left.T @ direction)))


def clear_matrix(m, n, seed=0):
    """A matrix whose leading singular vectors stand out."""
    rng = rng_of(seed)
    return 20 * np.outer(
        _unit(rng.standard_normal(m)), _unit(rng.standard_normal(n))
    ) + 0.1 * rng.standard_normal((m, n))


def _unit(x):
    return x / np.linalg.norm(x)


def same_up_to_sign(bit, u, v):
    """(u, v) and (-u, -v) are one rank-one approximation."""
    return any(
        np.array_equal(bit.u, signs_of(s * u)) and np.array_equal(bit.v, signs_of(s * v)) for s in (1, -1)
    )


@pytest.mark.parametrize("seed", range(5))
def test_rank_one_start_of_free_sides_is_the_svd(seed):
    matrix = clear_matrix(11, 9, seed)
    bit = TwoSides(FreeSide(11), FreeSide(9), 1).rank_one(DenseGains(matrix), rng_of(seed))
    left, _, right = np.linalg.svd(matrix)
    assert same_up_to_sign(bit, left[:, 0], right[0])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("free_database", [True, False])
def test_rank_one_start_of_linear_sides_is_the_projected_svd(seed, free_database):
    queries, items = features_of(14, seed=seed), features_of(12, seed=seed + 50)
    signal = np.outer(queries @ rng_of(seed).standard_normal(3), items @ rng_of(seed + 9).standard_normal(3))
    matrix = signal + 0.5 * rng_of(seed).standard_normal((14, 12))
    database = FreeSide(12) if free_database else LinearSide(items, 1)
    bit = TwoSides(LinearSide(queries, 1), database, 1).rank_one(DenseGains(matrix), rng_of(seed))
    P = queries @ np.linalg.pinv(queries)
    Q = np.eye(12) if free_database else items @ np.linalg.pinv(items)
    left, _, right = np.linalg.svd(P @ matrix @ Q)
    assert same_up_to_sign(bit, left[:, 0], right[0])


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_rank_one_start_of_the_twin_is_the_best_direction(same, seed):
    """Maximise (Xq w)' M (Xd w) over |Xq w|: an eigenvector problem, solved densely here."""
    queries = features_of(15, seed=seed)
    side = LinearSide(queries, 1)
    items = queries if same else queries + 0.01 * features_of(15, seed=seed + 50)
    database = side if same else LinearSide(items, 1)
    w = rng_of(seed + 70).standard_normal(3)
    matrix = 3 * np.outer(queries @ w, items @ w) - np.outer(queries[:, 0], items[:, 0]) * 0.1
    bit = SharedLinear(side, database, 1).rank_one(DenseGains(matrix), rng_of(seed))
    assert any(np.mean(bit.u == signs_of(s * (queries @ w))) == 1 for s in (1, -1))


def test_rank_one_start_of_shared_codes_is_the_leading_eigenvector():
    a = rng_of(3).standard_normal(10)
    matrix = np.outer(a, a) + 0.05 * rng_of(4).standard_normal((10, 10))
    bit = SharedFree(10).rank_one(DenseGains(matrix), rng_of())
    values, directions = np.linalg.eigh(matrix + matrix.T)
    leading = directions[:, np.abs(values).argmax()]
    assert any(np.array_equal(bit.u, signs_of(s * leading)) for s in (1, -1))
    assert bit.query is bit.database


@pytest.mark.parametrize("seed", range(10))
def test_shared_codes_end_where_no_flip_gains(seed):
    matrix = rng_of(seed).standard_normal((9, 9))
    family = SharedFree(9)
    start = family.random(rng_of(seed))
    bit, claimed = family.improve(start, DenseGains(matrix), rng_of())
    reached = score(bit, matrix)
    assert claimed == pytest.approx(reached)
    assert reached >= score(start, matrix)
    for item in range(9):
        flipped = bit.u.astype(float)
        flipped[item] *= -1
        assert flipped @ matrix @ flipped <= reached + 1e-9


def families(m, n, seed):
    square = LinearSide(features_of(m, seed=seed), 2)
    return {
        "free and free": TwoSides(FreeSide(m), FreeSide(n), 3),
        "linear and free": TwoSides(LinearSide(features_of(m, seed=seed), 2), FreeSide(n), 3),
        "linear and linear": TwoSides(square, LinearSide(features_of(n, seed=seed + 1), 2), 3),
        "one map": SharedLinear(square, square, 3),
        "one map, other queries": SharedLinear(square, LinearSide(features_of(n, seed=seed + 1), 2), 3),
        "one code": SharedFree(m),
    }


@pytest.mark.parametrize("name", families(3, 3, 0))
@pytest.mark.parametrize("seed", range(4))
def test_no_family_ever_descends(name, seed):
    square = name in ("one map", "one code")
    matrix = rng_of(seed).standard_normal((20, 20 if square else 16))
    family = families(*matrix.shape, seed)[name]
    gains = DenseGains(matrix)
    bit = family.random(rng_of(seed))
    scores = [score(bit, matrix)]
    rng = rng_of(seed)
    for _ in range(4):
        bit, claimed = family.improve(bit, gains, rng)
        scores.append(score(bit, matrix))
        assert claimed == pytest.approx(scores[-1])
    assert np.all(np.diff(scores) >= -1e-9)
    assert scores[-1] > scores[0]


@pytest.mark.parametrize("name", families(3, 3, 0))
@pytest.mark.parametrize("seed", range(3))
def test_bits_of_linear_sides_are_made_by_their_rows(name, seed):
    square = name in ("one map", "one code")
    matrix = rng_of(seed).standard_normal((20, 20 if square else 16))
    family = families(*matrix.shape, seed)[name]
    rng = rng_of(seed)
    bits = [family.random(rng), family.rank_one(DenseGains(matrix), rng)]
    bits.append(family.improve(bits[0], DenseGains(matrix), rng).bit)
    for bit in bits:
        assert isinstance(bit, Bit)
        assert set(np.unique(bit.u)) | set(np.unique(bit.v)) <= {-1, 1}
        for half, side in ((bit.query, "query"), (bit.database, "database")):
            features = getattr(getattr(family, side, None), "features", None)
            assert (half.row is None) is (features is None)
            if features is not None:
                assert np.array_equal(half.signs, signs_of(features @ half.row))


def test_the_true_gains_of_a_real_problem_climb_too():
    """The same climb on M of the objective, of packed codes, against the dense float64 score."""
    rng = rng_of(5)
    u, v = signs_of(rng.standard_normal((30, 2))), signs_of(rng.standard_normal((30, 2)))
    s = np.where(rng.random((30, 30)) < 0.2, 1, -1)
    pairs = pairs_of(from_matrix(s), 3)
    for bit in range(2):
        pairs.add(u[:, bit], v[:, bit])
    tables = gain_tables(2, 0.5, 0.7, LOSSES["sqrt_logistic"])
    dense = np.array([pairs.gains(tables).row(i) for i in range(30)])
    for family in families(30, 30, 0).values():
        start = family.rank_one(pairs.gains(tables), rng)
        end = family.improve(start, pairs.gains(tables), rng).bit
        assert score(end, dense) >= score(start, dense) - 1e-5
