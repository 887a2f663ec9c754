"""The doors to cpp/search.cpp: exact search in words of 64 bits.

Results are ordered by (distance, id) and depend neither on the instruction level nor on the number of threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asymhash.checks import check_integer
from asymhash.errors import invalid
from asymhash.kernels import _native
from asymhash.kernels.arguments import WORD_BITS, check_bitmap, check_pair, check_threads

__all__ = ["distance_counts", "items_within", "nearest_items"]


def nearest_items(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    k: int,
    *,
    allowed: NDArray[np.uint64] | None = None,
    n_threads: int | None = None,
    where: str = "nearest_items",
) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Find the k items nearest to every query, ordered by (distance, id).

    Parameters
    ----------
    queries : uint64 array of shape (n_queries, n_words)
    items : uint64 array of shape (n_items, n_words)
    k : int
        At least 1; where there are fewer items, all of them are found.
    allowed : uint64 array of shape (ceil(n_items / 64),), optional
        Bit i % 64 of word i // 64 allows item i.
    n_threads : int, optional
        None takes all cores of this process.
    where : str, optional
        Who asks, for the texts of errors.

    Returns
    -------
    distances : uint16 array of shape (n_queries, min(k, n_items))
        64 * n_words + 1 where `allowed` leaves fewer items.
    ids : int64 array of shape (n_queries, min(k, n_items))
        -1 where `allowed` leaves fewer items.

    Examples
    --------
    >>> items = np.array([[0b0001], [0b1011], [0b1111]], np.uint64)
    >>> nearest_items(np.array([[0b1011]], np.uint64), items, 2)
    (array([[0, 1]], dtype=uint16), array([[1, 2]]))
    """
    queries, items = check_pair(queries, items, where=where)
    k = min(check_integer(k, where=where, name="k", low=1), len(items))
    allowed = check_bitmap(allowed, len(items), where=where)
    n_threads = check_threads(n_threads, where=where)
    distances = np.empty((len(queries), k), dtype=np.uint16)
    ids = np.empty((len(queries), k), dtype=np.int64)
    if ids.size:
        _native.nearest_items(queries, items, allowed, n_threads, distances, ids)
    return distances, ids


def items_within(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    radius: int,
    *,
    allowed: NDArray[np.uint64] | None = None,
    n_threads: int | None = None,
    where: str = "items_within",
) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.int64]]:
    """Find all items at most `radius` bits from every query, ordered by (distance, id).

    Parameters
    ----------
    queries : uint64 array of shape (n_queries, n_words)
    items : uint64 array of shape (n_items, n_words)
    radius : int
        At least 0.
    allowed : uint64 array of shape (ceil(n_items / 64),), optional
        Bit i % 64 of word i // 64 allows item i.
    n_threads : int, optional
        None takes all cores of this process.
    where : str, optional
        Who asks, for the texts of errors.

    Returns
    -------
    offsets : int64 array of shape (n_queries + 1,)
        What query q found is at offsets[q] to offsets[q + 1].
    distances : uint16 array of shape (offsets[-1],)
    ids : int64 array of shape (offsets[-1],)

    Examples
    --------
    >>> items = np.array([[0b0001], [0b1011], [0b1111]], np.uint64)
    >>> items_within(np.array([[0b1111], [0b0001]], np.uint64), items, 1)
    (array([0, 2, 3]), array([0, 1, 0], dtype=uint16), array([2, 1, 0]))
    """
    queries, items = check_pair(queries, items, where=where)
    radius = check_integer(radius, where=where, name="radius", low=0)
    allowed = check_bitmap(allowed, len(items), where=where)
    n_threads = check_threads(n_threads, where=where)
    radius = min(radius, WORD_BITS * items.shape[1])
    offsets, distances, ids = _native.items_within(queries, items, allowed, n_threads, radius)
    # What C++ calls int64_t comes as NumPy's long long, which is another type of the same 64 bits.
    return offsets.view(np.int64), distances, ids.view(np.int64)


def distance_counts(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    n_bits: int,
    *,
    allowed: NDArray[np.uint64] | None = None,
    n_threads: int | None = None,
    where: str = "distance_counts",
) -> NDArray[np.int64]:
    """Count the items at each distance from each query; use it where distances are summed up, not kept.

    Parameters
    ----------
    queries : uint64 array of shape (n_queries, n_words)
    items : uint64 array of shape (n_items, n_words)
    n_bits : int
        Length of the codes, from 1 to 64 * n_words; bits beyond it must be zero.
    allowed : uint64 array of shape (ceil(n_items / 64),), optional
        Bit i % 64 of word i // 64 allows item i.
    n_threads : int, optional
        None takes all cores of this process.
    where : str, optional
        Who asks, for the texts of errors.

    Returns
    -------
    int64 array of shape (n_queries, n_bits + 1)

    Examples
    --------
    >>> distance_counts(np.array([[0b11]], np.uint64), np.array([[0b01], [0b11], [0b10]], np.uint64), 2)
    array([[1, 2, 0]])
    """
    queries, items = check_pair(queries, items, where=where)
    n_words = items.shape[1]
    n_bits = check_integer(n_bits, where=where, name="n_bits", low=1, high=WORD_BITS * n_words)
    allowed = check_bitmap(allowed, len(items), where=where)
    n_threads = check_threads(n_threads, where=where)
    counts = np.empty((len(queries), WORD_BITS * n_words + 1), dtype=np.int64)
    _native.distance_counts(queries, items, allowed, n_threads, counts)
    if counts[:, n_bits + 1 :].any():
        largest = int(np.flatnonzero(counts.any(axis=0))[-1])
        raise invalid(where, f"bits beyond n_bits={n_bits} must be zero", f"a distance of {largest}")
    return np.ascontiguousarray(counts[:, : n_bits + 1])
