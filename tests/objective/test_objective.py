"""The objective against loops over pairs that are obviously right."""

import itertools
import math

import numpy as np
import pytest

from asymhash.objective import LOSSES, best_threshold, fit_free_codes, gain_tables, pair_loss
from asymhash.objective.dense_pairs import DensePairs
from asymhash.similarity import from_matrix

NAIVE = {
    "sqrt_logistic": lambda z: math.sqrt(math.log1p(math.exp(-z))),
    "logistic": lambda z: math.log1p(math.exp(-z)),
    "hinge": lambda z: max(0.0, 1 - z),
}
EVERY_LOSS = sorted(NAIVE)


def problem(m=7, n=9, k=4, seed=0):
    """Signs of m queries and n items, and a similarity that is as often positive as one in three."""
    rng = np.random.default_rng(seed)
    u, v = (2 * rng.integers(0, 2, (size, k)) - 1 for size in (m, n))
    s = np.where(rng.random((m, n)) < 0.35, 1, -1)
    return u.astype(np.int8), v.astype(np.int8), s


def table_of(u, v, s, n_bits_at_most=None):
    pairs = DensePairs(from_matrix(s), n_bits_at_most or max(1, u.shape[1]))
    for bit in range(u.shape[1]):
        pairs.add(u[:, bit], v[:, bit])
    return pairs


def naive_loss(u, v, s, theta, beta, loss):
    total = 0.0
    for i in range(len(u)):
        for j in range(len(v)):
            y = sum(int(a) * int(b) for a, b in zip(u[i], v[j], strict=True)) - theta
            total += (beta if s[i, j] > 0 else 1 - beta) * NAIVE[loss](s[i, j] * y)
    return total


def naive_gains(u, v, s, theta, beta, loss):
    """M_ij of the paper, from Y of the given (other) bits."""
    gains = np.zeros(s.shape)
    for i, j in np.ndindex(*s.shape):
        y = sum(int(a) * int(b) for a, b in zip(u[i], v[j], strict=True)) - theta
        weight = beta if s[i, j] > 0 else 1 - beta
        gains[i, j] = weight / 2 * (NAIVE[loss](s[i, j] * (y - 1)) - NAIVE[loss](s[i, j] * (y + 1)))
    return gains


def test_every_loss_has_a_twin():
    assert set(LOSSES) == set(NAIVE)
    z = np.linspace(-30, 30, 121)
    for name, loss in LOSSES.items():
        np.testing.assert_allclose(loss(z), [NAIVE[name](float(x)) for x in z], rtol=1e-12, atol=1e-12)
        assert np.isfinite(loss(np.array([-3000.0, 3000.0]))).all()
        assert np.all(np.diff(loss(z)) <= 0)


@pytest.mark.parametrize("loss", EVERY_LOSS)
@pytest.mark.parametrize("theta", [-1.5, 0.0, 2.25])
def test_pair_loss(loss, theta):
    u, v, s = problem()
    similar, dissimilar = table_of(u, v, s).histograms()
    tables = pair_loss(4, theta, 0.7, LOSSES[loss])
    total = tables.similar @ similar + tables.dissimilar @ dissimilar
    assert total == pytest.approx(naive_loss(u, v, s, theta, 0.7, loss), rel=1e-12)


@pytest.mark.parametrize("loss", EVERY_LOSS)
@pytest.mark.parametrize("beta", [0.3, 0.7])
def test_gains_are_those_of_the_paper(loss, beta):
    u, v, s = problem()
    gains = table_of(u, v, s).gains(gain_tables(4, 0.75, beta, LOSSES[loss]), exact=True)
    wanted = naive_gains(u, v, s, 0.75, beta, loss)
    np.testing.assert_allclose(np.concatenate([block for _, block in gains.blocks()]), wanted, rtol=1e-12)


@pytest.mark.parametrize("loss", EVERY_LOSS)
def test_the_loss_of_one_more_bit_is_a_constant_minus_its_gain(loss):
    """C - u' M v, for all values of the bit: the change of the true loss, flip by flip."""
    u, v, s = problem(4, 3, 2)
    gains = table_of(u, v, s).gains(gain_tables(2, 0.5, 0.7, LOSSES[loss]), exact=True)
    constants = []
    for signs in itertools.product([-1, 1], repeat=7):
        a, b = np.array(signs[:4], dtype=np.int8), np.array(signs[4:], dtype=np.int8)
        true = naive_loss(np.column_stack([u, a]), np.column_stack([v, b]), s, 0.5, 0.7, loss)
        constants.append(true + a @ gains.times(b))
        assert a @ gains.times(b) == pytest.approx(gains.transposed_times(a) @ b)
    assert len(constants) == 128
    np.testing.assert_allclose(constants, constants[0], rtol=1e-12)


def test_histograms():
    u, v, s = problem(k=6)
    similar, dissimilar = table_of(u, v, s).histograms()
    wanted = {1: [0] * 7, -1: [0] * 7}
    for i, j in np.ndindex(*s.shape):
        wanted[s[i, j]][sum(a != b for a, b in zip(u[i], v[j], strict=True))] += 1
    assert similar.tolist() == wanted[1]
    assert dissimilar.tolist() == wanted[-1]
    assert sum(wanted[1]) > 0


@pytest.mark.parametrize("loss", EVERY_LOSS)
@pytest.mark.parametrize("k", [1, 3, 6])
def test_the_threshold_is_the_best_of_the_grid(loss, k):
    u, v, s = problem(k=k, seed=k)
    theta, total = best_threshold(*table_of(u, v, s).histograms(), beta=0.7, loss=LOSSES[loss])
    grid = [step / 4 for step in range(-4 * (k + 4), 4 * (k + 4) + 1)]
    losses = [naive_loss(u, v, s, t, 0.7, loss) for t in grid]
    assert total == pytest.approx(min(losses), rel=1e-12)
    assert theta in grid
    assert naive_loss(u, v, s, theta, 0.7, loss) == pytest.approx(min(losses), rel=1e-12)
    if loss != "hinge":  # whose ties are exact only in real numbers
        assert theta == grid[int(np.argmin(losses))]


def test_the_threshold_is_bounded():
    for similar, dissimilar, sign in (([9, 0, 0], [0, 0, 0], -1), ([0, 0, 0], [9, 0, 0], 1)):
        theta, _ = best_threshold(np.array(similar), np.array(dissimilar), beta=0.7, loss=LOSSES["logistic"])
        assert theta == sign * 6.0


@pytest.mark.parametrize(("at_most", "dtype"), [(255, np.uint8), (256, np.uint16), (300, np.uint16)])
def test_distances_have_room_for_all_bits(at_most, dtype):
    rng = np.random.default_rng(0)
    u = np.ones((3, at_most), dtype=np.int8)
    v = -np.ones((4, at_most), dtype=np.int8)
    v[0] = 2 * rng.integers(0, 2, at_most) - 1
    pairs = table_of(u, v, np.eye(3, 4) * 2 - 1, at_most)
    assert pairs.distances.dtype == dtype
    assert np.array_equal(pairs.distances, (u[:, None] != v[None]).sum(axis=2))
    assert pairs.distances.max() == at_most == pairs.n_bits
    assert pairs.histograms()[1][at_most] > 0
    assert sum(map(np.sum, pairs.histograms())) == 12


@pytest.mark.parametrize("at_most", [6, 300])
def test_bits_that_were_added_can_be_removed(at_most):
    u, v, s = problem(k=6)
    pairs = table_of(u, v, s, at_most)
    for gone in (0, 5, 3):
        pairs.remove(gone)
        assert pairs.n_bits == 5
        kept = [bit for bit in range(6) if bit != gone]
        wanted = (u[:, None, kept] != v[None, :, kept]).sum(axis=2)
        assert np.array_equal(pairs.distances, wanted)
        assert [len(h) for h in pairs.histograms()] == [6, 6]
        pairs.add(u[:, gone], v[:, gone], at=gone)
    assert np.array_equal(pairs.distances, (u[:, None] != v[None]).sum(axis=2))


@pytest.mark.parametrize(("block_pairs", "n_blocks"), [(1 << 22, 1), (20, 7), (9, 13), (1, 13)])
def test_products_in_blocks_are_those_of_the_whole_matrix(block_pairs, n_blocks, monkeypatch):
    monkeypatch.setattr("asymhash.objective.dense_pairs._BLOCK_PAIRS", block_pairs)
    u, v, s = problem(13, 9, 5)
    pairs = table_of(u, v, s)
    tables = gain_tables(5, 0.25, 0.7, LOSSES["sqrt_logistic"])
    wanted = naive_gains(u, v, s, 0.25, 0.7, "sqrt_logistic")
    a, b = np.random.default_rng(1).standard_normal(13), np.random.default_rng(2).standard_normal(9)
    for exact, tolerance in ((True, 1e-12), (False, 1e-5)):
        gains = pairs.gains(tables, exact=exact)
        assert gains.shape == (13, 9)
        assert len(list(gains.blocks())) == n_blocks
        np.testing.assert_allclose(gains.times(b), wanted @ b, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(gains.transposed_times(a), wanted.T @ a, rtol=tolerance, atol=tolerance)
        for i in range(13):
            np.testing.assert_allclose(gains.row(i), wanted[i], rtol=tolerance)
        for j in range(9):
            np.testing.assert_allclose(gains.column(j), wanted[:, j], rtol=tolerance)
    similar, dissimilar = pairs.histograms()
    distances = (u[:, None] != v[None]).sum(axis=2)
    assert np.array_equal(similar, np.bincount(distances[s > 0], minlength=6))
    assert np.array_equal(dissimilar, np.bincount(distances[s < 0], minlength=6))


def test_the_diagonal_of_a_square_matrix(monkeypatch):
    monkeypatch.setattr("asymhash.objective.dense_pairs._BLOCK_PAIRS", 16)
    u, v, s = problem(8, 8, 3)
    gains = table_of(u, v, s).gains(gain_tables(3, 0.0, 0.7, LOSSES["logistic"]), exact=True)
    np.testing.assert_allclose(
        gains.diagonal(), np.diag(naive_gains(u, v, s, 0.0, 0.7, "logistic")), rtol=1e-12
    )


@pytest.mark.parametrize("loss", EVERY_LOSS)
@pytest.mark.parametrize("seed", range(5))
def test_free_codes_end_where_no_flip_gains(loss, seed):
    u, start, s = problem(12, 8, 5, seed)
    before = start.copy()
    signs = fit_free_codes(u, from_matrix(s), start, theta=0.5, beta=0.7, loss=LOSSES[loss])
    assert np.array_equal(start, before)
    assert (signs.dtype, signs.shape) == (np.int8, (8, 5))
    changed = 0
    for j in range(8):
        column = s[:, j : j + 1]
        reached = naive_loss(u, signs[j : j + 1], column, 0.5, 0.7, loss)
        first = naive_loss(u, start[j : j + 1], column, 0.5, 0.7, loss)
        assert reached <= first + 1e-9
        changed += reached < first - 1e-9
        for bit in range(5):
            flipped = signs[j : j + 1].copy()
            flipped[0, bit] *= -1
            assert reached <= naive_loss(u, flipped, column, 0.5, 0.7, loss) + 1e-9
    assert changed > 0
    again = fit_free_codes(u, from_matrix(s), signs, theta=0.5, beta=0.7, loss=LOSSES[loss])
    assert np.array_equal(again, signs)


def test_one_free_bit_is_the_best_of_both():
    u, start, s = problem(9, 6, 1)
    signs = fit_free_codes(u, from_matrix(s), start, theta=0.0, beta=0.5, loss=LOSSES["logistic"])
    for j in range(6):
        both = {b: naive_loss(u, np.array([[b]]), s[:, j : j + 1], 0.0, 0.5, "logistic") for b in (-1, 1)}
        assert both[int(signs[j, 0])] == pytest.approx(min(both.values()))
