"""Checks of what goes to the kernels: arrays of words, filters, numbers of threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asymhash.checks import check_integer
from asymhash.errors import invalid, invalid_type
from asymhash.kernels.threads import n_threads as all_threads

__all__ = ["MAX_THREADS", "MAX_WORDS", "WORD_BITS", "check_bitmap", "check_pair", "check_threads"]

WORD_BITS = 64
MAX_WORDS = 16
MAX_THREADS = 1024


def check_pair(
    queries: NDArray[np.uint64], items: NDArray[np.uint64], *, where: str
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Check the words of queries and items, which must be equally long codes.

    Parameters
    ----------
    queries, items : uint64 arrays of shape (n, n_words)
    where : str
        Who asks.

    Returns
    -------
    queries, items : C-contiguous uint64 arrays

    Examples
    --------
    >>> words = np.zeros((3, 2), np.uint64)
    >>> [array.shape for array in check_pair(words[:1], words, where="nearest_items")]
    [(1, 2), (3, 2)]
    """
    queries = _check_words(queries, where=where, name="queries")
    items = _check_words(items, where=where, name="items")
    if queries.shape[1] != items.shape[1]:
        raise invalid(
            where,
            "queries and items must have the same number of words",
            f"{queries.shape[1]} and {items.shape[1]}",
        )
    return queries, items


def check_bitmap(
    allowed: NDArray[np.uint64] | None, n_items: int, *, where: str
) -> NDArray[np.uint64] | None:
    """Check a filter: a bit for every item, 64 to a word, the least significant first.

    Parameters
    ----------
    allowed : uint64 array of shape (ceil(n_items / 64),), or None
        Bits beyond the last item are not looked at.
    n_items : int
    where : str
        Who asks.

    Returns
    -------
    C-contiguous uint64 array, or None

    Examples
    --------
    >>> check_bitmap(np.array([5], np.uint64), 3, where="nearest_items")
    array([5], dtype=uint64)
    """
    if allowed is None:
        return None
    n_words = -(-n_items // WORD_BITS)
    expected = f"allowed must be a uint64 array of shape ({n_words},) for {n_items} items"
    if not isinstance(allowed, np.ndarray):
        raise invalid_type(where, expected, f"a {type(allowed).__name__}")
    if allowed.dtype != np.uint64:
        raise invalid_type(where, expected, f"dtype {allowed.dtype}")
    if allowed.shape != (n_words,):
        raise invalid(where, expected, f"shape {allowed.shape}")
    return np.ascontiguousarray(allowed)


def check_threads(n_threads: int | None, *, where: str) -> int:
    """Check a number of threads; None means all that `limit_threads` leaves.

    Parameters
    ----------
    n_threads : int or None
    where : str
        Who asks.

    Returns
    -------
    int

    Examples
    --------
    >>> check_threads(2, where="nearest_items")
    2
    """
    if n_threads is None:
        return all_threads()
    return check_integer(n_threads, where=where, name="n_threads", low=1, high=MAX_THREADS)


def _check_words(words: NDArray[np.uint64], *, where: str, name: str) -> NDArray[np.uint64]:
    expected = f"{name} must be a uint64 array of shape (n, 1 to {MAX_WORDS} words)"
    if not isinstance(words, np.ndarray):
        raise invalid_type(where, expected, f"a {type(words).__name__}")
    if words.dtype != np.uint64:
        raise invalid_type(where, expected, f"dtype {words.dtype}")
    if words.ndim != 2 or not 1 <= words.shape[1] <= MAX_WORDS:
        raise invalid(where, expected, f"shape {words.shape}")
    return np.ascontiguousarray(words)
