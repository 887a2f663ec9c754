"""Search in packed codes, in plain NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "distance_counts",
    "hamming_distances",
    "items_within",
    "nearest_items",
]


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


def nearest_items(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    k: int,
    allowed: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Find the k items nearest to every query, ordered by (distance, id).

    Parameters
    ----------
    queries : uint64 array of shape (n_queries, n_words)
    items : uint64 array of shape (n_items, n_words)
    k : int
    allowed : bool array of shape (n_items,), optional

    Returns
    -------
    distances : uint16 array of shape (n_queries, min(k, n_items))
        64 * n_words + 1 where there are fewer allowed items.
    ids : int64 array of shape (n_queries, min(k, n_items))
        -1 where there are fewer allowed items.

    Examples
    --------
    >>> items = np.array([[0b0001], [0b1011], [0b1111]], np.uint64)
    >>> nearest_items(np.array([[0b1011]], np.uint64), items, 2)
    (array([[0, 1]], dtype=uint16), array([[1, 2]]))
    """
    shape = (len(queries), min(k, len(items)))
    distances = np.full(shape, 64 * items.shape[1] + 1, dtype=np.uint16)
    ids = np.full(shape, -1, dtype=np.int64)
    candidates = np.arange(len(items)) if allowed is None else np.flatnonzero(allowed)
    for row, all_distances in enumerate(hamming_distances(queries, items[candidates])):
        order = np.argsort(all_distances, kind="stable")[: shape[1]]
        distances[row, : len(order)] = all_distances[order]
        ids[row, : len(order)] = candidates[order]
    return distances, ids


def items_within(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    radius: int,
    allowed: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.int64]]:
    """Find all items at most `radius` bits from every query, ordered by (distance, id).

    Parameters
    ----------
    queries : uint64 array of shape (n_queries, n_words)
    items : uint64 array of shape (n_items, n_words)
    radius : int
    allowed : bool array of shape (n_items,), optional

    Returns
    -------
    offsets : int64 array of shape (n_queries + 1,)
    distances : uint16 array of shape (offsets[-1],)
    ids : int64 array of shape (offsets[-1],)

    Examples
    --------
    >>> items = np.array([[0b0001], [0b1011], [0b1111]], np.uint64)
    >>> items_within(np.array([[0b1111], [0b0001]], np.uint64), items, 1)
    (array([0, 2, 3]), array([0, 1, 0], dtype=uint16), array([2, 1, 0]))
    """
    every_distance, every_id = nearest_items(queries, items, max(len(items), 1), allowed)
    found = (every_distance <= radius) & (every_id >= 0)
    offsets = np.concatenate([[0], np.cumsum(found.sum(axis=1))]).astype(np.int64)
    return offsets, every_distance[found], every_id[found]


def distance_counts(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    n_bits: int,
    allowed: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Count the items at each distance from each query.

    Parameters
    ----------
    queries : uint64 array of shape (n_queries, n_words)
    items : uint64 array of shape (n_items, n_words)
    n_bits : int
        Length of the codes; no distance exceeds it.
    allowed : bool array of shape (n_items,), optional

    Returns
    -------
    int64 array of shape (n_queries, n_bits + 1)

    Examples
    --------
    >>> distance_counts(np.array([[0b11]], np.uint64), np.array([[0b01], [0b11], [0b10]], np.uint64), 2)
    array([[1, 2, 0]])
    """
    if allowed is not None:
        items = items[allowed]
    rows = [np.bincount(row, minlength=n_bits + 1) for row in hamming_distances(queries, items)]
    return np.array(rows, dtype=np.int64).reshape(len(queries), n_bits + 1)
