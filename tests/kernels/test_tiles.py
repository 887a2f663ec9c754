"""The kernels for tiles of products and for squares, against their twins at every instruction level."""

import re

import numpy as np
import pytest

from asymhash import kernels
from asymhash.errors import InvalidArgument, InvalidType
from asymhash.kernels import reference

SCALARS = (np.float32, np.float64)
# Around the widths of registers: 4, 8 and 16 entries.
WIDTHS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 129, 300]


@pytest.fixture(params=["portable", "avx2", "avx512"])
def forced_level(request):
    if request.param not in kernels.levels():
        pytest.skip(f"this machine has no {request.param}")
    with kernels.force_level(request.param):
        yield request.param


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_select_between_equals_reference(forced_level, scalar, width, share):
    rng = np.random.default_rng(width)
    values = rng.integers(-50, 50, (9, width)).astype(scalar)  # ties with the bounds among them
    values[rng.random(values.shape) < 0.05] = rng.choice([np.nan, np.inf, -np.inf])
    low = rng.integers(-60, 0, 9).astype(scalar)
    high = (low + share * 110).astype(scalar)
    low[3], high[5] = -np.inf, np.inf
    high[7] = low[7] - 1  # nothing can be inside
    found = kernels.select_between(values, low, high)
    assert_same(found, reference.select_between(values, low, high))
    if share == 1.0:
        assert found.inside.sum() > 0
        assert width < 8 or found.below.sum() > 0


def test_select_between_takes_what_is_not_contiguous_and_nothing(forced_level):
    values = np.arange(60.0).reshape(6, 10)[::2, ::3]
    low, high = np.full(6, 5.0)[::2], np.full(3, 30.0)
    assert_same(kernels.select_between(values, low, high), reference.select_between(values, low, high))
    for shape in ((0, 5), (3, 0)):
        none = np.zeros(shape, np.float32)
        found = kernels.select_between(none, np.zeros(shape[0], np.float32), np.ones(shape[0], np.float32))
        assert (len(found.below), found.inside.sum(), found.columns.size) == (shape[0], 0, 0)


def test_append_runs_equals_reference():
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 4, (5, 12))
    starts = np.concatenate([[0], np.cumsum(sizes.sum(axis=0))[:-1]])
    results = []
    for append in (kernels.append_runs, reference.append_runs):
        out, cursors = np.full(sizes.sum(), -1, np.int32), starts.copy()
        for part, counts in enumerate(sizes):
            append(np.arange(counts.sum(), dtype=np.int32) + 100 * part, counts, cursors, out)
        results.append((out, cursors))
    assert_same(*results)
    assert (results[0][0] >= 0).all()
    assert np.array_equal(results[0][1], np.cumsum(sizes.sum(axis=0)))


@pytest.mark.parametrize(
    ("counts", "cursors", "message"),
    [
        ([1, 1], [0, 1], "counts must sum to the number of items"),
        ([2, 2], [0, 1], "counts must sum to the number of items"),
        ([-1, 4], [0, 1], "counts must sum to the number of items"),
        ([1, 2], [0, 4], "a run must end inside out"),
        ([1, 2], [-1, 2], "a run must end inside out"),
        ([3], [0, 1], "counts and cursors must have the same length"),
    ],
)
def test_append_runs_writes_nothing_outside(counts, cursors, message):
    items, out = np.arange(3, dtype=np.int32), np.zeros(5, np.int32)
    with pytest.raises(InvalidArgument, match=re.escape(f"append_runs: {message}, got 3 items, ")):
        kernels.append_runs(items, np.array(counts), np.array(cursors), out)
    assert not out.any()
    with pytest.raises(InvalidType, match="append_runs: out must be a contiguous 1-d array of int32"):
        kernels.append_runs(items, np.array([3]), np.array([0]), out.astype(np.int64))


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("width", WIDTHS)
def test_row_squares_equal_reference_bit_by_bit(forced_level, scalar, width):
    vectors = np.random.default_rng(width).standard_normal((5, width)).astype(scalar)
    found = kernels.row_squares(vectors)
    assert_same([found], [reference.row_squares(vectors)])
    np.testing.assert_allclose(found, np.square(vectors.astype(float)).sum(axis=1), rtol=1e-5)


def test_wrong_tiles_are_refused_by_name():
    values, row, column = np.zeros((2, 3)), np.zeros(3), np.zeros(2)
    message = r"^select_between: values must be a 2-d array of float32 or float64, got dtype int64\.$"
    with pytest.raises(InvalidType, match=message):
        kernels.select_between(values.astype(int), column, column)
    with pytest.raises(
        InvalidArgument, match=r"^row_squares: vectors must be a 2-d array .*, got shape \(3,\)"
    ):
        kernels.row_squares(row)
    with pytest.raises(
        InvalidType, match=r"high must be an array of float64 of shape \(2,\), got dtype float32"
    ):
        kernels.select_between(values, column, column.astype(np.float32))
