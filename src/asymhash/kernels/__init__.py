"""The one door to the compiled kernels of cpp/.

What lies behind it::

    hamming_distances                       here: checks, allocation
    nearest_items, items_within,            search.py: checks, allocation; with a filter and threads
    distance_counts
      -> _native (cpp/bindings.cpp)         releases the interpreter lock
        -> cpp/search.cpp, cpp/counts.cpp   queries in tiles, items in ranges, one thread for each part
          -> cpp/scan*, cpp/hamming.cpp     blocks of items, every query over each block
            -> portable | avx2 | avx512     chosen by cpp/cpu.cpp when called
    select_between, append_runs             tiles.py, cpp/tiles.cpp: one tile of a matrix product
    row_squares                             tiles.py, cpp/squares.cpp
    encode_signs                            encode.py, cpp/encode*: from vectors to codes, without the product
    products with M, histograms, rows       training.py, cpp/products.cpp, cpp/classify.cpp: imported from there

Codes come as rows of 64-bit words, bit i of a code being bit i % 64 of word i // 64. Every instruction level
gives the same results: they are integers or chosen entries, but for the sums of `row_squares`, whose order is
fixed, and for which signs `encode_signs` leaves open. `reference` says what they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from asymhash.checks import check_choice
from asymhash.kernels import _native
from asymhash.kernels.arguments import MAX_WORDS, WORD_BITS, check_pair
from asymhash.kernels.encode import ENCODED_DTYPES, SignMap, encode_signs
from asymhash.kernels.search import distance_counts, items_within, nearest_items
from asymhash.kernels.threads import limit_threads, n_threads, usable_cores
from asymhash.kernels.tiles import Between, append_runs, row_squares, select_between

__all__ = [
    "ENCODED_DTYPES",
    "MAX_WORDS",
    "REFERENCE",
    "WORD_BITS",
    "Between",
    "SignMap",
    "append_runs",
    "distance_counts",
    "encode_signs",
    "force_level",
    "hamming_distances",
    "items_within",
    "level",
    "levels",
    "limit_threads",
    "n_threads",
    "nearest_items",
    "row_squares",
    "sanitized",
    "select_between",
    "usable_cores",
]

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
    queries, items = check_pair(queries, items, where="hamming_distances")
    distances = np.empty((len(queries), len(items)), dtype=np.uint16)
    _native.hamming_distances(queries, items, distances)
    return distances


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


def sanitized() -> bool:
    """Tell whether the kernels were built by `make sanitize`, which makes them slow and watchful.

    Returns
    -------
    bool
    """
    return _native.sanitized


@contextmanager
def force_level(name: str) -> Iterator[None]:
    """In a `with` block, use a lower instruction level in all threads; for tests and comparisons.

    A call without `with` does nothing: it only makes the context manager.

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
