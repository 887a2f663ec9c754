"""The door to the compiled kernels of the training: products with M, histograms over all pairs, one row by SGD.

The package alone calls these, thousands of times a fit, so arguments are only insisted on in C++: dtypes and shapes.
Codes are rows of 64-bit words whose bits at `n_bits` and beyond are zero; `indptr` and `indices` are the positives of a
`Similarity`. Sums of integers are exact; all results are the same for any number of threads.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from asymhash.kernels import _native
from asymhash.kernels.threads import n_threads

__all__ = [
    "FEATURE_STEP",
    "MAX_WALSH_BITS",
    "MAX_WEIGHT",
    "code_gradients",
    "drop_bit",
    "krawtchouk",
    "logistic_descent",
    "lookup_product",
    "mask_pairs",
    "masked_product",
    "pair_histogram",
    "positives_histogram",
    "positives_product",
    "positives_product_real",
    "set_bit",
    "walsh_histogram",
    "walsh_product",
]

MAX_WEIGHT = 511  # of `lookup_product`: larger ones would overflow its 32-bit sums
MAX_WALSH_BITS = 28
FEATURE_STEP = 16  # features of `logistic_descent` are padded to a multiple of this

Words = NDArray[np.uint64]
Table = NDArray[np.int16]
Positives = tuple[NDArray[np.int64], NDArray[np.int32]]

set_bit = _native.set_bit
drop_bit = _native.drop_bit


def lookup_product(queries: Words, items: Words, n_bits: int, table: Table, x: Table) -> NDArray[np.int64]:
    """Sum table[distance] * x over all items, for each query; |x| is at most `MAX_WEIGHT`.

    Examples
    --------
    >>> codes = np.array([[0b00], [0b01], [0b11]], np.uint64)
    >>> lookup_product(codes[:1], codes, 2, np.array([1, 10, 100], np.int16), np.array([1, 1, -1], np.int16))
    array([-89])
    """
    out = np.empty(len(queries), dtype=np.int64)
    _native.lookup_product(queries, items, n_bits, table, x, out, n_threads())
    return out


def mask_pairs(positives: Positives, n_items: int) -> NDArray[np.uint8]:
    """Write the similar items of each query as bits, lowest first, in rows of whole 32-bit words.

    Examples
    --------
    >>> mask_pairs((np.array([0, 2]), np.array([1, 9], np.int32)), 10)
    array([[2, 2, 0, 0]], dtype=uint8)
    """
    mask = np.zeros((len(positives[0]) - 1, -(-n_items // 32) * 4), dtype=np.uint8)
    _native.mask_pairs(*positives, mask)
    return mask


def masked_product(
    queries: Words, items: Words, mask: NDArray[np.uint8], n_bits: int, tables: tuple[Table, Table], x: Table
) -> NDArray[np.int64]:
    """Sum over all items, for each query, the entry of the pair's own table: (dissimilar, similar) by the mask.

    Examples
    --------
    >>> codes = np.array([[0b00], [0b01], [0b11]], np.uint64)
    >>> tables = np.array([1, 10, 100], np.int16), np.array([2, 20, 200], np.int16)
    >>> masked_product(codes[:1], codes, np.array([[0b010, 0, 0, 0]], np.uint8), 2, tables, np.ones(3, np.int16))
    array([121])
    """
    out = np.empty(len(queries), dtype=np.int64)
    _native.masked_product(queries, items, mask, n_bits, *tables, x, out, n_threads())
    return out


def positives_product(
    queries: Words,
    items: Words,
    positives: Positives,
    n_bits: int,
    table: NDArray[np.int64],
    x: Table,
) -> NDArray[np.int64]:
    """Sum table[distance] * x over the similar items of each query.

    Examples
    --------
    >>> codes = np.array([[0b00], [0b01]], np.uint64)
    >>> positives = np.array([0, 1]), np.array([1], np.int32)
    >>> positives_product(codes[:1], codes, positives, 2, np.array([1, 10, 100]), np.array([1, -1], np.int16))
    array([-10])
    """
    out = np.zeros(len(queries), dtype=np.int64)
    _native.positives_product(queries, items, *positives, n_bits, table, x, out, n_threads())
    return out


def positives_product_real(
    queries: Words,
    items: Words,
    positives: Positives,
    n_bits: int,
    table: NDArray[np.float64],
    x: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Sum table[distance] * x over the similar items of each query, in real numbers."""
    out = np.zeros(len(queries))
    _native.positives_product_real(queries, items, *positives, n_bits, table, x, out, n_threads())
    return out


def walsh_product(
    queries: Words, items: Words, n_bits: int, table: NDArray[np.float64], x: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sum table[distance] * x over all items, for each query, by the Walsh-Hadamard transform.

    Examples
    --------
    >>> codes = np.array([[0b00], [0b01], [0b11]], np.uint64)
    >>> walsh_product(codes[:1], codes, 2, np.array([1.0, 10.0, 100.0]), np.array([1.0, 1.0, -1.0]))
    array([-89.])
    """
    spectrum = table @ krawtchouk(n_bits) / 2.0**n_bits
    out = np.empty(len(queries))
    _native.walsh_product(queries, items, n_bits, spectrum, x, out, n_threads())
    return out


def pair_histogram(queries: Words, items: Words, n_bits: int) -> NDArray[np.int64]:
    """Count all pairs at each distance 0..n_bits.

    Examples
    --------
    >>> pair_histogram(np.array([[0b00]], np.uint64), np.array([[0b01], [0b10]], np.uint64), 2)
    array([0, 2, 0])
    """
    counts = np.empty(n_bits + 1, dtype=np.int64)
    _native.pair_histogram(queries, items, n_bits, counts, n_threads())
    return counts


def walsh_histogram(queries: Words, items: Words, n_bits: int) -> NDArray[np.int64]:
    """Count all pairs at each distance 0..n_bits by the Walsh-Hadamard transform, in exact integers.

    Examples
    --------
    >>> walsh_histogram(np.array([[0b00]], np.uint64), np.array([[0b01], [0b10]], np.uint64), 2)
    array([0, 2, 0])
    """
    weights = np.empty(n_bits + 1, dtype=np.int64)
    _native.walsh_correlation(queries, items, n_bits, weights, n_threads())
    exact = [int(weight) for weight in weights]
    polynomials = _exact_krawtchouk(n_bits)
    # Products may pass 64 bits; Python's integers do not mind.
    counts = [sum(k * w for k, w in zip(row, exact, strict=True)) >> n_bits for row in polynomials]
    return np.array(counts, dtype=np.int64)


def positives_histogram(queries: Words, items: Words, positives: Positives, n_bits: int) -> NDArray[np.int64]:
    """Count similar pairs at each distance 0..n_bits."""
    counts = np.empty(n_bits + 1, dtype=np.int64)
    _native.positives_histogram(queries, items, *positives, n_bits, counts, n_threads())
    return counts


def logistic_descent(
    features: NDArray[np.float32],
    gain: NDArray[np.float32],
    start: NDArray[np.float32],
    *,
    n_epochs: int,
    steps: tuple[float, float],
    seed: int,
) -> NDArray[np.float32]:
    """Row that raises sum_i gain_i sign(<w, x_i>), by SGD on the weighted logistic loss; twin in `reference`.

    Parameters
    ----------
    features : float32 array of shape (n_items, width)
        Width is a multiple of `FEATURE_STEP`, padded with zeros.
    gain : float32 array of shape (n_items,)
        Of mean size one.
    start : float32 array of shape (width,)
    n_epochs : int
    steps : (first, last)
        Step for one batch of 32, falling geometrically.
    seed : int
        Of the order of the items.
    """
    row = start.copy()
    _native.logistic_descent(features, gain, row, n_epochs, *steps, seed)
    return row


def code_gradients(
    queries: Words,
    items: Words,
    positives: Positives,
    n_bits: int,
    tables: tuple[NDArray[np.float32], NDArray[np.float32]],
) -> NDArray[np.float32]:
    """Sum over all items, for each query and bit, the entry of the pair's own table times the item's sign.

    Parameters
    ----------
    queries, items, positives, n_bits
        Codes of m queries and n items, and the similar pairs.
    tables : (dissimilar, similar)
        An entry for each distance 0..n_bits.

    Examples
    --------
    >>> codes = np.array([[0b00], [0b01], [0b11]], np.uint64)
    >>> tables = np.array([1, 10, 100], np.float32), np.array([2, 20, 200], np.float32)
    >>> code_gradients(codes[:1], codes, (np.array([0, 1]), np.array([1], np.int32)), 2, tables)
    array([[119.,  79.]], dtype=float32)
    """
    out = np.empty((len(queries), n_bits), dtype=np.float32)
    _native.code_gradients(queries, items, *positives, n_bits, *tables, out, n_threads())
    return out


@lru_cache(maxsize=64)
def _exact_krawtchouk(n_bits: int) -> tuple[tuple[int, ...], ...]:
    """K_d(w): sum of (-1)^<s, c> over all codes c at distance d from zero, for a frequency s of weight w."""
    return tuple(
        tuple(
            sum((-1) ** j * math.comb(w, j) * math.comb(n_bits - w, d - j) for j in range(d + 1))
            for w in range(n_bits + 1)
        )
        for d in range(n_bits + 1)
    )


@lru_cache(maxsize=64)
def krawtchouk(n_bits: int) -> NDArray[np.float64]:
    """Matrix that takes a table over distances to its Walsh-Hadamard transform by weight, (n_bits + 1, n_bits + 1)."""
    matrix = np.array(_exact_krawtchouk(n_bits), dtype=np.float64)
    matrix.setflags(write=False)
    return matrix
