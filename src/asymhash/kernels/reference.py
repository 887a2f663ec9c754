"""The kernels once more in plain NumPy: slow, obviously right, and without checks of their arguments.

Tests compare the compiled kernels with these at every instruction level.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["distance_counts", "hamming_distances"]


def hamming_distances(queries: NDArray[np.uint64], items: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Count the bits that differ, for every query and every item.

    Parameters
    ----------
    queries : uint64 array of shape (n_queries, n_words)
    items : uint64 array of shape (n_items, n_words)

    Returns
    -------
    uint16 array of shape (n_queries, n_items)

    Examples
    --------
    >>> hamming_distances(np.array([[0b1011]], np.uint64), np.array([[0b0001], [0b1011]], np.uint64))
    array([[2, 0]], dtype=uint16)
    """
    different = queries[:, None, :] ^ items[None, :, :]
    distances: NDArray[np.uint16] = np.bitwise_count(different).sum(axis=2, dtype=np.uint16)
    return distances


def distance_counts(queries: NDArray[np.uint64], items: NDArray[np.uint64], n_bits: int) -> NDArray[np.int64]:
    """Count the items at each distance from each query.

    Parameters
    ----------
    queries : uint64 array of shape (n_queries, n_words)
    items : uint64 array of shape (n_items, n_words)
    n_bits : int
        Length of the codes; no distance exceeds it.

    Returns
    -------
    int64 array of shape (n_queries, n_bits + 1)

    Examples
    --------
    >>> distance_counts(np.array([[0b11]], np.uint64), np.array([[0b01], [0b11], [0b10]], np.uint64), 2)
    array([[1, 2, 0]])
    """
    rows = [np.bincount(row, minlength=n_bits + 1) for row in hamming_distances(queries, items)]
    return np.array(rows, dtype=np.int64).reshape(len(queries), n_bits + 1)
