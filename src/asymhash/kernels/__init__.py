"""The one door to the compiled kernels of cpp/.

What lies behind it::

    hamming_distances, distance_counts      here: checks, allocation
      -> _native (cpp/bindings.cpp)         releases the interpreter lock
        -> cpp/hamming.cpp                  blocks of items, every query over each block
          -> portable | avx2 | avx512       one block, chosen by cpp/cpu.cpp when called

Codes come as rows of 64-bit words, bit i of a code being bit i % 64 of word i // 64. All results are
integers, so every instruction level gives the same ones; `reference` says what they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from asymhash.checks import check_choice, check_integer
from asymhash.errors import invalid, invalid_type
from asymhash.kernels import _native
from asymhash.kernels.threads import limit_threads, n_threads, usable_cores

__all__ = [
    "MAX_WORDS",
    "REFERENCE",
    "WORD_BITS",
    "distance_counts",
    "force_level",
    "hamming_distances",
    "level",
    "levels",
    "limit_threads",
    "n_threads",
    "usable_cores",
]

WORD_BITS = 64
MAX_WORDS = 16
REFERENCE = "reference"  # a level below all others: plain NumPy where there is such a path

_is_reference_forced = False


def hamming_distances(queries: NDArray[np.uint64], items: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Count the bits that differ, for every query and every item; use it where all distances are needed.

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
    queries, items = _check_pair(queries, items, where="hamming_distances")
    distances = np.empty((len(queries), len(items)), dtype=np.uint16)
    _native.hamming_distances(queries, items, distances)
    return distances


def distance_counts(queries: NDArray[np.uint64], items: NDArray[np.uint64], n_bits: int) -> NDArray[np.int64]:
    """Count the items at each distance from each query; use it where distances are summed up, not kept.

    Parameters
    ----------
    queries : uint64 array of shape (n_queries, n_words)
    items : uint64 array of shape (n_items, n_words)
    n_bits : int
        Length of the codes, from 1 to 64 * n_words; bits beyond it must be zero.

    Returns
    -------
    int64 array of shape (n_queries, n_bits + 1)

    Examples
    --------
    >>> distance_counts(np.array([[0b11]], np.uint64), np.array([[0b01], [0b11], [0b10]], np.uint64), 2)
    array([[1, 2, 0]])
    """
    where = "distance_counts"
    queries, items = _check_pair(queries, items, where=where)
    n_words = items.shape[1]
    n_bits = check_integer(n_bits, where=where, name="n_bits", low=1, high=WORD_BITS * n_words)
    counts = np.empty((len(queries), WORD_BITS * n_words + 1), dtype=np.int64)
    _native.distance_counts(queries, items, counts)
    if counts[:, n_bits + 1 :].any():
        largest = int(np.flatnonzero(counts.any(axis=0))[-1])
        raise invalid(where, f"bits beyond n_bits={n_bits} must be zero", f"a distance of {largest}")
    return np.ascontiguousarray(counts[:, : n_bits + 1])


def levels() -> tuple[str, ...]:
    """Name the instruction levels that this machine can use, lowest first.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> levels()[0]
    'portable'
    """
    return tuple(_native.levels())


def level() -> str:
    """Name the instruction level in use: the best of `levels()`, unless another is forced.

    Returns
    -------
    str

    Examples
    --------
    >>> level() == levels()[-1]
    True
    """
    return REFERENCE if _is_reference_forced else _native.level()


@contextmanager
def force_level(name: str) -> Iterator[None]:
    """Use a lower instruction level for a while, in all threads; for tests and comparisons.

    Parameters
    ----------
    name : str
        One of `levels()`, or "reference": the training in plain NumPy, as it was before there were kernels for it.

    Examples
    --------
    >>> with force_level("portable"):
    ...     level()
    'portable'
    """
    global _is_reference_forced
    name = check_choice(name, where="force_level", name="name", choices=(*levels(), REFERENCE))
    previous = _native.level(), _is_reference_forced
    _is_reference_forced = name == REFERENCE
    if not _is_reference_forced:
        _native.force_level(name)
    try:
        yield
    finally:
        _native.force_level(previous[0])
        _is_reference_forced = previous[1]


def _check_pair(
    queries: NDArray[np.uint64], items: NDArray[np.uint64], *, where: str
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    queries = _check_words(queries, where=where, name="queries")
    items = _check_words(items, where=where, name="items")
    if queries.shape[1] != items.shape[1]:
        raise invalid(
            where,
            "queries and items must have the same number of words",
            f"{queries.shape[1]} and {items.shape[1]}",
        )
    return queries, items


def _check_words(words: NDArray[np.uint64], *, where: str, name: str) -> NDArray[np.uint64]:
    expected = f"{name} must be a uint64 array of shape (n, 1 to {MAX_WORDS} words)"
    if not isinstance(words, np.ndarray):
        raise invalid_type(where, expected, f"a {type(words).__name__}")
    if words.dtype != np.uint64:
        raise invalid_type(where, expected, f"dtype {words.dtype}")
    if words.ndim != 2 or not 1 <= words.shape[1] <= MAX_WORDS:
        raise invalid(where, expected, f"shape {words.shape}")
    return np.ascontiguousarray(words)
