"""One tile of a matrix product, in plain NumPy."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from asymhash.kernels.tiles import Between

__all__ = [
    "append_runs",
    "row_squares",
    "select_between",
]

Real = TypeVar("Real", np.float32, np.float64)


def select_between(values: NDArray[Real], low: NDArray[Real], high: NDArray[Real]) -> Between:
    """Find the entries of each row between two bounds, both included.

    Parameters
    ----------
    values : float32 or float64 array of shape (n_rows, n_columns)
    low, high : arrays of shape (n_rows,)

    Returns
    -------
    Between

    Examples
    --------
    >>> select_between(np.array([[2.0, 0.5, 3.0]]), np.array([1.0]), np.array([2.0])).columns
    array([0], dtype=int32)
    """
    below = values < low[:, None]
    inside = (values >= low[:, None]) & (values <= high[:, None])
    columns = np.nonzero(inside)[1].astype(np.int32)
    return Between(below.sum(axis=1), inside.sum(axis=1), columns, values[inside])


def append_runs(
    items: NDArray[np.int32], counts: NDArray[np.int64], cursors: NDArray[np.int64], out: NDArray[np.int32]
) -> None:
    """Append runs of items, one for each row, to lists that lie in one array.

    Parameters
    ----------
    items : int32 array of shape (n_items,)
    counts, cursors : int64 arrays of shape (n_rows,)
        The cursors are moved behind the runs.
    out : int32 array

    Examples
    --------
    >>> out, cursors = np.zeros(4, np.int32), np.array([0, 3])
    >>> append_runs(np.array([7, 8, 9], np.int32), np.array([2, 1]), cursors, out)
    >>> out, cursors
    (array([7, 8, 0, 9], dtype=int32), array([2, 4]))
    """
    for row, run in enumerate(np.split(items, np.cumsum(counts)[:-1])):
        out[cursors[row] : cursors[row] + counts[row]] = run
        cursors[row] += counts[row]


def row_squares(vectors: NDArray[Real]) -> NDArray[Real]:
    """Sum the squares of every row: 16 partial sums, then halves of them.

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
    n, d = vectors.shape
    sums = np.zeros((n, 16), dtype=vectors.dtype)
    with np.errstate(over="ignore"):
        for first in range(0, d, 16):
            part = vectors[:, first : first + 16]
            sums[:, : part.shape[1]] += part * part
        for half in (8, 4, 2, 1):
            sums[:, :half] += sums[:, half : 2 * half]
    squares: NDArray[Real] = sums[:, 0].copy()
    return squares
