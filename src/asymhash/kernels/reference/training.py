"""What training asks of packed codes, in plain NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asymhash.kernels.reference.search import hamming_distances

__all__ = [
    "code_gradients",
    "descend_in_order",
    "logistic_descent",
    "lookup_product",
    "orders_of",
    "pair_histogram",
    "positives_histogram",
    "positives_product",
]


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


def code_gradients(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    positives: tuple[NDArray[np.int64], NDArray[np.int32]],
    n_bits: int,
    tables: tuple[NDArray[np.float32], NDArray[np.float32]],
) -> NDArray[np.float32]:
    """Sum over all items, for each query and bit, the entry of the pair's own table times the item's sign.

    Examples
    --------
    >>> codes = np.array([[0b00], [0b01], [0b11]], np.uint64)
    >>> tables = np.array([1, 10, 100], np.float32), np.array([2, 20, 200], np.float32)
    >>> code_gradients(codes[:1], codes, (np.array([0, 1]), np.array([1], np.int32)), 2, tables)
    array([[119.,  79.]], dtype=float32)
    """
    dissimilar, similar = (table.astype(np.float64) for table in tables)
    distances = hamming_distances(queries, items)
    entries = dissimilar[distances]
    indptr, indices = positives
    owners = np.repeat(np.arange(len(queries)), np.diff(indptr))
    entries[owners, indices] = similar[distances[owners, indices]]
    bits = np.unpackbits(items.view(np.uint8), axis=1, bitorder="little")[:, :n_bits]
    return (entries @ (2.0 * bits - 1.0)).astype(np.float32)


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
    """Orders in which the compiled kernel sees the items: one Fisher-Yates shuffle, read with strides.

    Examples
    --------
    >>> [sorted(order.tolist()) for order in orders_of(7, 3, 2)]
    [[0, 1, 2], [0, 1, 2]]
    """
    numbers = _splitmix64(seed)

    def below(bound: int) -> int:
        return ((next(numbers) & 0xFFFFFFFF) * bound) >> 32

    shuffled = np.arange(n_items)
    for i in range(n_items, 1, -1):
        j = below(i)
        shuffled[i - 1], shuffled[j] = shuffled[j], shuffled[i - 1]
    orders = []
    for _ in range(n_epochs):
        stride, place = 1, 0
        if n_items > 2:
            while math.gcd(stride := 1 + below(n_items - 1), n_items) != 1:
                pass
            place = below(n_items)
        orders.append(shuffled[(place + stride * np.arange(n_items)) % n_items])
    return orders


def _splitmix64(state: int) -> Iterator[int]:
    word = 2**64 - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & word
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & word
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & word
        yield z ^ (z >> 31)
