"""How many items, and how many similar ones, are at each Hamming distance from each query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asymhash import kernels
from asymhash.codes import BinaryCodes
from asymhash.errors import invalid, invalid_type
from asymhash.search import check_code_pair
from asymhash.similarity import Similarity

__all__ = ["DistanceHistograms", "check_codes", "count_pairs", "distance_histograms"]

_BLOCK_PAIRS = 1 << 20  # positives looked up at once: 8 MiB for each word of a code


@dataclass(frozen=True, slots=True, eq=False)
class DistanceHistograms:
    """Counts of items by their Hamming distance from each query.

    Attributes
    ----------
    all : int64 array of shape (m, n_bits + 1)
        Items at each distance.
    positive : int64 array of shape (m, n_bits + 1)
        Similar items at each distance.
    """

    all: NDArray[np.int64]
    positive: NDArray[np.int64]


def distance_histograms(
    query_codes: BinaryCodes, database_codes: BinaryCodes, similarity: Similarity
) -> DistanceHistograms:
    """Count items by distance; use it once where several metrics of the same codes are wanted.

    Parameters
    ----------
    query_codes : BinaryCodes of m queries
    database_codes : BinaryCodes of n items
    similarity : Similarity of shape (m, n)

    Returns
    -------
    DistanceHistograms

    Examples
    --------
    >>> from asymhash.codes import BinaryCodes
    >>> from asymhash.evaluate import distance_histograms
    >>> from asymhash.similarity import Similarity
    >>> queries = BinaryCodes.from_signs([[1, 1]])
    >>> items = BinaryCodes.from_signs([[1, 1], [1, -1], [-1, 1]])
    >>> histograms = distance_histograms(queries, items, Similarity([0, 2], [0, 1], (1, 3)))
    >>> histograms.all, histograms.positive
    (array([[1, 2, 0]]), array([[1, 1, 0]]))
    """
    return count_pairs(query_codes, database_codes, similarity, where="distance_histograms")


def check_codes(query_codes: object, database_codes: object, *, where: str) -> None:
    """Refuse what is no pair of codes of one length."""
    check_code_pair(query_codes, database_codes, where=where, names=("query_codes", "database_codes"))


def _check_similarity(similarity: object, *, where: str) -> None:
    if not isinstance(similarity, Similarity):
        remedy = "asymhash.similarity makes one, from_matrix(S) of a matrix."
        found = f"a {type(similarity).__name__}"
        raise invalid_type(where, "similarity must be a Similarity", found, remedy)


def count_pairs(
    query_codes: BinaryCodes, database_codes: BinaryCodes, similarity: Similarity, *, where: str
) -> DistanceHistograms:
    """Count items by distance for `where`, who asks."""
    check_codes(query_codes, database_codes, where=where)
    _check_similarity(similarity, where=where)
    expected_shape = (len(query_codes), len(database_codes))
    if similarity.shape != expected_shape:
        expected = f"similarity must have the shape {expected_shape} of the codes"
        raise invalid(where, expected, str(similarity.shape))
    n_bits = query_codes.n_bits
    counts = kernels.distance_counts(query_codes.words, database_codes.words, n_bits)
    positive = np.zeros((len(query_codes), n_bits + 1), dtype=np.int64)
    for block in _query_blocks(similarity.indptr):
        starts = similarity.indptr[block.start : block.stop + 1]
        owners = np.repeat(np.arange(block.stop - block.start), np.diff(starts))
        items = similarity.indices[starts[0] : starts[-1]]
        distances = _pair_distances(query_codes.words[block], owners, database_codes.words, items)
        size = (block.stop - block.start) * (n_bits + 1)
        found = np.bincount(owners * (n_bits + 1) + distances, minlength=size)
        positive[block] = found.reshape(-1, n_bits + 1)
    return DistanceHistograms(counts, positive)


def _query_blocks(indptr: NDArray[np.int64]) -> Iterator[slice]:
    """Yield blocks of whole queries with about `_BLOCK_PAIRS` positives, and never less than one query."""
    start, n_queries = 0, indptr.size - 1
    while start < n_queries:
        stop = int(np.searchsorted(indptr, indptr[start] + _BLOCK_PAIRS, side="right")) - 1
        stop = min(max(stop, start + 1), start + _BLOCK_PAIRS, n_queries)
        yield slice(start, stop)
        start = stop


def _pair_distances(
    query_words: NDArray[np.uint64],
    owners: NDArray[np.int64],
    item_words: NDArray[np.uint64],
    items: NDArray[np.integer[Any]],
) -> NDArray[np.int64]:
    distances = np.zeros(owners.size, dtype=np.int64)
    for word in range(query_words.shape[1]):
        distances += np.bitwise_count(query_words[owners, word] ^ item_words[items, word])
    return distances
