"""Theorem 1, verified exactly."""

import itertools
import re

import numpy as np
import pytest

from asymhash import similarity
from asymhash.errors import InvalidArgument
from asymhash.theory import exponential_gap

EVERY_R = range(2, 13)


def similarity_of_the_proof(n: int) -> np.ndarray:
    half = np.arange(n) < n // 2
    positive = half[:, None] != half[None, :]
    return np.where(positive | np.eye(n, dtype=bool), 1, -1).astype(np.int8)


@pytest.mark.parametrize("r", EVERY_R)
def test_asymmetric_codes_of_2r_bits_express_the_similarity(r):
    gap = exponential_gap(r)
    assert (gap.n_points, gap.asymmetric_bits, gap.symmetric_lower_bound) == (2**r, 2 * r, 2**r // 2)
    assert gap.query_codes.n_bits == gap.database_codes.n_bits == 2 * r
    wanted = similarity_of_the_proof(gap.n_points)
    assert np.array_equal(gap.similarity.to_dense(), wanted)
    items = gap.database_codes.to_signs(np.int16).T
    for start in range(0, gap.n_points, 512):
        rows = slice(start, start + 512)
        products = gap.query_codes[rows].to_signs(np.int16) @ items
        assert products.size > 0
        assert np.all(wanted[rows] * (products - gap.threshold) > 0)


@pytest.mark.parametrize("r", EVERY_R)
def test_points_have_the_distances_of_the_proof(r):
    gap = exponential_gap(r)
    n, points = gap.n_points, gap.points
    squares = (points**2).sum(axis=1)
    np.testing.assert_allclose(squares, 0.5, rtol=1e-12)
    for start in range(0, n, 1024):
        rows = slice(start, start + 1024)
        distances = squares[rows, None] + squares - 2 * points[rows] @ points.T
        wanted = np.where(gap.similarity.rows(rows).to_dense() > 0, 1 - 1 / n, 1 + 1 / n)
        wanted[np.arange(len(wanted)), np.arange(n)[rows]] = 0.0
        np.testing.assert_allclose(distances, wanted, atol=1e-12)


@pytest.mark.parametrize("r", [2, 5, 8])
def test_similarity_is_the_one_of_the_points(r):
    gap = exponential_gap(r)
    assert similarity.neighbors(gap.points, radius=1.0) == gap.similarity


@pytest.mark.parametrize("r", EVERY_R)
def test_counts_of_the_symmetric_bound(r):
    """The proof adds up n^2/2 - n dissimilar pairs inside the halves and n^2/2 similar ones across."""
    gap = exponential_gap(r)
    n = gap.n_points
    q = np.repeat([1, -1], n // 2)
    dense = gap.similarity.to_dense()
    sign = np.multiply.outer(q.astype(np.int8), q.astype(np.int8))
    assert np.count_nonzero((dense == -1) & (sign == 1)) == n * n // 2 - n
    assert np.count_nonzero((dense == 1) & (sign == -1)) == n * n // 2
    assert np.count_nonzero((dense == 1) & (sign == 1)) == n  # the diagonal
    # n k + (n^2/2 - n)(theta - 1) - (n^2/2)(theta + 1) >= 0 fails for k below the bound, whatever theta.
    for k in {1, gap.symmetric_lower_bound - 1}:
        largest = max(
            n * k + (n * n // 2 - n) * (theta - 1) - n * n // 2 * (theta + 1) for theta in (1 - k, k - 1)
        )
        assert largest < 0


def has_symmetric_code(S: np.ndarray, k: int) -> bool:
    """Search all codes of k bits, point by point; obviously right, and slow."""
    vertices = np.array(list(itertools.product([-1, 1], repeat=k)))

    def extend(codes: list[np.ndarray], low: int, high: int) -> bool:
        i = len(codes)
        if i == len(S):
            return True
        for code in vertices if i else vertices[:1]:  # a flip of a bit in all codes changes nothing
            smallest, largest = min(low, k), high
            for j, other in enumerate(codes):
                product = int(code @ other)
                if S[i, j] > 0:
                    smallest = min(smallest, product)
                else:
                    largest = max(largest, product)
            if smallest > largest and extend([*codes, code], smallest, largest):
                return True
        return False

    return extend([], k, -k - 1)


def test_search_for_symmetric_codes_finds_those_that_exist():
    assert has_symmetric_code(np.where(np.eye(4) > 0, 1, -1), 2)
    assert not has_symmetric_code(np.where(np.eye(4) > 0, 1, -1), 1)


@pytest.mark.parametrize("r", [2, 3])
def test_no_symmetric_code_is_below_the_bound(r):
    gap = exponential_gap(r)
    S = gap.similarity.to_dense()
    assert gap.symmetric_lower_bound > 1
    for k in range(1, gap.symmetric_lower_bound):
        assert not has_symmetric_code(S, k)


@pytest.mark.parametrize(("r", "found"), [(0, "0"), (15, "15")])
def test_r_outside_its_range_is_refused(r, found):
    message = f"exponential_gap: r must be an integer from 1 to 14, got {found}."
    with pytest.raises(InvalidArgument, match=f"^{re.escape(message)}$"):
        exponential_gap(r)
