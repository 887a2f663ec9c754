"""Kernels that work on one tile of a matrix product; the door of `asymhash.kernels` opens here too."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from asymhash.errors import invalid, invalid_type
from asymhash.kernels import _native

__all__ = ["Between", "append_runs", "row_squares", "select_between"]

Real = TypeVar("Real", np.float32, np.float64)


class Between(NamedTuple):
    """What `select_between` found: two counts for each row, and the entries inside, row after row."""

    below: NDArray[np.int64]
    inside: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[Any]


def select_between(values: NDArray[Real], low: NDArray[Real], high: NDArray[Real]) -> Between:
    """Find the entries of each row between two bounds, both included; use it where few of many are.

    Parameters
    ----------
    values : float32 or float64 array of shape (n_rows, n_columns)
        A value that is no number is neither below nor inside.
    low, high : arrays of shape (n_rows,)
        Of the dtype of values.

    Returns
    -------
    Between
        `below` counts the entries below `low`; `columns` and `values` are those inside.

    Examples
    --------
    >>> bounds = np.array([1.0]), np.array([2.0])
    >>> found = select_between(np.array([[2.0, 0.5, 3.0, 1.0]]), *bounds)
    >>> found.below, found.inside, found.columns, found.values
    (array([1]), array([2]), array([0, 3], dtype=int32), array([2., 1.]))
    """
    where = "select_between"
    values = _check_matrix(values, where=where, name="values")
    low = _check_vector(low, values, len(values), where=where, name="low")
    high = _check_vector(high, values, len(values), where=where, name="high")
    below, inside = np.empty(len(values), dtype=np.int64), np.empty(len(values), dtype=np.int64)
    # Room for all, of which the system hands out only the pages that are written to.
    columns, found = np.empty(values.size, dtype=np.int32), np.empty(values.size, dtype=values.dtype)
    size = _native.select_between(values, low, high, below, inside, columns, found)
    return Between(below, inside, columns[:size].copy(), found[:size].copy())


def append_runs(
    items: NDArray[np.int32], counts: NDArray[np.int64], cursors: NDArray[np.int64], out: NDArray[np.int32]
) -> None:
    """Append runs of items, one for each row, to lists that lie in one array; use it to put tiles together.

    Parameters
    ----------
    items : int32 array of shape (n_items,)
        The runs, row after row.
    counts : int64 array of shape (n_rows,)
        Lengths of the runs.
    cursors : int64 array of shape (n_rows,)
        Where in `out` each run goes; moved behind it.
    out : int32 array

    Examples
    --------
    >>> out, cursors = np.zeros(4, np.int32), np.array([0, 3])
    >>> append_runs(np.array([7, 8, 9], np.int32), np.array([2, 1]), cursors, out)
    >>> out, cursors
    (array([7, 8, 0, 9], dtype=int32), array([2, 4]))
    """
    arrays: dict[str, NDArray[Any]] = {"items": items, "counts": counts, "cursors": cursors, "out": out}
    for name, array in arrays.items():
        kind = np.dtype(np.int64 if name in ("counts", "cursors") else np.int32)
        if array.dtype != kind or array.ndim != 1 or not array.flags.c_contiguous:
            expected = f"{name} must be a contiguous 1-d array of {kind}"
            raise invalid_type("append_runs", expected, f"a {array.ndim}-d array of {array.dtype}")
    try:
        _native.append_runs(items, counts, cursors, out)
    except ValueError as error:
        found = f"{len(items)} items, {len(counts)} counts and room for {len(out)}"
        raise invalid("append_runs", str(error), found) from None


def row_squares(vectors: NDArray[Real]) -> NDArray[Real]:
    """Sum the squares of every row, in a fixed order; use it for bounds, in the dtype of the vectors.

    Parameters
    ----------
    vectors : float32 or float64 array of shape (n, d)

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> row_squares(np.array([[3.0, 4.0]]))
    array([25.])
    """
    vectors = _check_matrix(vectors, where="row_squares", name="vectors")
    squares: NDArray[Real] = np.empty(len(vectors), dtype=vectors.dtype)
    _native.row_squares(vectors, squares)
    return squares


def _check_matrix(array: NDArray[Real], *, where: str, name: str) -> NDArray[Real]:
    expected = f"{name} must be a 2-d array of float32 or float64"
    if array.dtype not in (np.float32, np.float64):
        raise invalid_type(where, expected, f"dtype {array.dtype}")
    if array.ndim != 2:
        raise invalid(where, expected, f"shape {array.shape}")
    return np.ascontiguousarray(array)


def _check_vector(
    array: NDArray[Real], like: NDArray[Real], size: int, *, where: str, name: str
) -> NDArray[Real]:
    expected = f"{name} must be an array of {like.dtype} of shape ({size},)"
    if array.dtype != like.dtype:
        raise invalid_type(where, expected, f"dtype {array.dtype}")
    if array.shape != (size,):
        raise invalid(where, expected, f"shape {array.shape}")
    return np.ascontiguousarray(array)
