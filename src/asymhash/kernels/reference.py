"""The kernels once more in plain NumPy: slow, obviously right, and without checks of their arguments.

Tests compare the compiled kernels with these at every instruction level.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "descend_in_order",
    "distance_counts",
    "hamming_distances",
    "items_within",
    "logistic_descent",
    "lookup_product",
    "nearest_items",
    "orders_of",
    "pair_histogram",
    "positives_histogram",
    "positives_product",
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


def lookup_product(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    n_bits: int,
    table: NDArray[np.number[Any]],
    x: NDArray[np.number[Any]],
) -> NDArray[Any]:
    """Sum table[distance] * x over all items, for each query: whole numbers as int64, real ones as float64.

    Examples
    --------
    >>> codes = np.array([[0b00], [0b01], [0b11]], np.uint64)
    >>> lookup_product(codes[:1], codes, 2, np.array([1, 10, 100]), np.array([1, 1, -1]))
    array([-89])
    """
    wide = np.float64 if table.dtype.kind == "f" else np.int64
    product: NDArray[Any] = table.astype(wide)[hamming_distances(queries, items)] @ x.astype(wide)
    return product


def positives_product(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    positives: tuple[NDArray[np.int64], NDArray[np.int32]],
    n_bits: int,
    table: NDArray[np.number[Any]],
    x: NDArray[np.number[Any]],
) -> NDArray[Any]:
    """Sum table[distance] * x over the similar items of each query.

    Examples
    --------
    >>> codes = np.array([[0b00], [0b01]], np.uint64)
    >>> positives = np.array([0, 1]), np.array([1], np.int32)
    >>> positives_product(codes[:1], codes, positives, 2, np.array([1, 10, 100]), np.array([1, -1]))
    array([-10])
    """
    wide = np.float64 if table.dtype.kind == "f" else np.int64
    indptr, indices = positives
    entries = table.astype(wide)[hamming_distances(queries, items)] * x.astype(wide)
    rows = [entries[i, indices[indptr[i] : indptr[i + 1]]].sum() for i in range(len(queries))]
    return np.array(rows, dtype=wide)


def pair_histogram(queries: NDArray[np.uint64], items: NDArray[np.uint64], n_bits: int) -> NDArray[np.int64]:
    """Count all pairs at each distance 0..n_bits.

    Examples
    --------
    >>> pair_histogram(np.array([[0b00]], np.uint64), np.array([[0b01], [0b10]], np.uint64), 2)
    array([0, 2, 0])
    """
    return np.bincount(hamming_distances(queries, items).ravel(), minlength=n_bits + 1)


def positives_histogram(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    positives: tuple[NDArray[np.int64], NDArray[np.int32]],
    n_bits: int,
) -> NDArray[np.int64]:
    """Count similar pairs at each distance 0..n_bits.

    Examples
    --------
    >>> codes = np.array([[0b00], [0b01]], np.uint64)
    >>> positives_histogram(codes, codes, (np.array([0, 1, 1]), np.array([1], np.int32)), 2)
    array([0, 1, 0])
    """
    indptr, indices = positives
    distances = hamming_distances(queries, items)
    owners = np.repeat(np.arange(len(queries)), np.diff(indptr))
    return np.bincount(distances[owners, indices], minlength=n_bits + 1)


def logistic_descent(
    features: NDArray[np.float32],
    gain: NDArray[np.float32],
    start: NDArray[np.float32],
    *,
    n_epochs: int,
    steps: tuple[float, float],
    seed: int,
) -> NDArray[np.float32]:
    """Row that raises sum_i gain_i sign(<w, x_i>), by SGD on the weighted logistic loss in batches of 32.

    The order of the items is drawn by NumPy here, and the numbers are float64, so rows differ a little from those of
    the compiled kernel; `orders_of` gives its order for a close comparison.
    """
    rng = np.random.default_rng(seed)
    orders = (rng.permutation(len(features)) for _ in range(n_epochs))
    return descend_in_order(features, gain, start, orders, n_epochs=n_epochs, steps=steps)


def descend_in_order(
    features: NDArray[np.float32],
    gain: NDArray[np.float32],
    start: NDArray[np.float32],
    orders: Iterable[NDArray[np.int64]],
    *,
    n_epochs: int,
    steps: tuple[float, float],
) -> NDArray[np.float32]:
    """SGD that sees the items in a given order in each epoch."""
    batch = 32
    n_items = len(features)
    w = start.astype(np.float64)
    weighted = features * gain.astype(np.float64)[:, None]
    signed = features * np.sign(gain).astype(np.float64)[:, None]
    sizes = np.geomspace(*steps, n_epochs * -(-n_items // batch)) / batch
    position = 0
    for order in orders:
        weighted_rows, signed_rows = weighted[order], signed[order]
        for first in range(0, n_items, batch):
            margin = signed_rows[first : first + batch] @ w
            pull = 1.0 / (1.0 + np.exp(np.clip(margin, -80.0, 80.0)))
            w += sizes[position] * (pull @ weighted_rows[first : first + batch])
            position += 1
    return w.astype(np.float32)


def orders_of(seed: int, n_items: int, n_epochs: int) -> list[NDArray[np.int64]]:
    """Orders in which the compiled kernel sees the items: Fisher-Yates shuffles by splitmix64.

    Examples
    --------
    >>> [sorted(order.tolist()) for order in orders_of(7, 3, 2)]
    [[0, 1, 2], [0, 1, 2]]
    """
    word = 2**64 - 1
    order, orders, state = list(range(n_items)), [], seed
    for _ in range(n_epochs):
        for i in range(n_items, 1, -1):
            state = (state + 0x9E3779B97F4A7C15) & word
            z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & word
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & word
            z ^= z >> 31
            j = ((z & 0xFFFFFFFF) * i) >> 32
            order[i - 1], order[j] = order[j], order[i - 1]
        orders.append(np.array(order))
    return orders
