"""Exact search among codes in memory: the nearest, all within a radius, how many at each distance.

Order is (distance, id), an id being the place of an item in the database; docs/decisions/002 tells why. Results do not
depend on the machine or on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asymhash import kernels
from asymhash.checks import check_integer, read_array
from asymhash.codes import BinaryCodes
from asymhash.errors import invalid, invalid_type

__all__ = [
    "NearbyCodes",
    "NearestCodes",
    "check_code_pair",
    "codes_within",
    "count_distances",
    "nearest_codes",
]


@final
@dataclass(frozen=True, eq=False, slots=True)
class NearestCodes:
    """What `nearest_codes` found: a row for every query, ordered by (distance, id).

    Attributes
    ----------
    distances : uint16 array of shape (n_queries, k), read-only
    ids : int64 array of shape (n_queries, k), read-only
        Places in the database. A row in which a filter leaves fewer than k items ends in id -1 and
        distance n_bits + 1, which no item has.
    """

    distances: NDArray[np.uint16]
    ids: NDArray[np.int64]

    def __post_init__(self) -> None:
        _freeze(self.distances, self.ids)


@final
@dataclass(frozen=True, eq=False, slots=True)
class NearbyCodes:
    """What `codes_within` found: query after query, each ordered by (distance, id).

    Attributes
    ----------
    offsets : int64 array of shape (n_queries + 1,), read-only
        What query q found is at offsets[q] to offsets[q + 1] of the other two.
    distances : uint16 array of shape (offsets[-1],), read-only
    ids : int64 array of shape (offsets[-1],), read-only
        Places in the database.
    """

    offsets: NDArray[np.int64]
    distances: NDArray[np.uint16]
    ids: NDArray[np.int64]

    def __post_init__(self) -> None:
        _freeze(self.offsets, self.distances, self.ids)

    def ids_of(self, query: int) -> NDArray[np.int64]:
        """Give the ids that one query found.

        Parameters
        ----------
        query : int
            From 0 to the number of queries - 1.

        Returns
        -------
        int64 array of shape (n_found,)

        Examples
        --------
        >>> codes = BinaryCodes.from_signs([[1, 1], [1, -1], [-1, -1]])
        >>> codes_within(codes, codes, 1).ids_of(2)
        array([2, 1])
        """
        high = len(self.offsets) - 2
        query = check_integer(query, where="NearbyCodes.ids_of", name="query", low=0, high=high)
        return self.ids[self.offsets[query] : self.offsets[query + 1]]


def nearest_codes(
    queries: BinaryCodes,
    database: BinaryCodes,
    k: int,
    *,
    n_threads: int | None = None,
    allowed: ArrayLike | None = None,
) -> NearestCodes:
    """Find the k codes nearest to every query; exact, and fast enough up to tens of millions of codes.

    Parameters
    ----------
    queries, database : BinaryCodes
        Of the same length.
    k : int
        At least 1. Where the database is smaller, all of it is found.
    n_threads : int, optional
        At most so many threads; all cores of this process by default.
    allowed : bool array of shape (len(database),), optional
        Which items may be found.

    Returns
    -------
    NearestCodes
        With `distances` and `ids` of shape (len(queries), min(k, len(database))).

    Examples
    --------
    >>> database = BinaryCodes.from_signs([[1, 1, 1], [1, 1, -1], [-1, -1, -1]])
    >>> found = nearest_codes(database[:1], database, k=2)
    >>> found.ids, found.distances
    (array([[0, 1]]), array([[0, 1]], dtype=uint16))
    >>> nearest_codes(database[:1], database, k=2, allowed=[False, False, True]).ids
    array([[ 2, -1]])
    """
    where = "nearest_codes"
    check_code_pair(queries, database, where=where)
    bitmap = _bitmap(allowed, len(database), where=where)
    distances, ids = kernels.nearest_items(
        queries.words, database.words, k, allowed=bitmap, n_threads=n_threads, where=where
    )
    if bitmap is not None:
        distances[ids < 0] = database.n_bits + 1
    return NearestCodes(distances, ids)


def codes_within(
    queries: BinaryCodes,
    database: BinaryCodes,
    radius: int,
    *,
    n_threads: int | None = None,
    allowed: ArrayLike | None = None,
) -> NearbyCodes:
    """Find all codes at most `radius` bits from every query, however many they are.

    Parameters
    ----------
    queries, database : BinaryCodes
        Of the same length.
    radius : int
        At least 0.
    n_threads : int, optional
        At most so many threads; all cores of this process by default.
    allowed : bool array of shape (len(database),), optional
        Which items may be found.

    Returns
    -------
    NearbyCodes

    Examples
    --------
    >>> codes = BinaryCodes.from_signs([[1, 1], [1, -1], [-1, -1]])
    >>> found = codes_within(codes[:2], codes, radius=1)
    >>> found.offsets, found.ids
    (array([0, 2, 5]), array([0, 1, 1, 0, 2]))
    """
    where = "codes_within"
    check_code_pair(queries, database, where=where)
    bitmap = _bitmap(allowed, len(database), where=where)
    found = kernels.items_within(
        queries.words, database.words, radius, allowed=bitmap, n_threads=n_threads, where=where
    )
    return NearbyCodes(*found)


def count_distances(
    queries: BinaryCodes,
    database: BinaryCodes,
    *,
    n_threads: int | None = None,
    allowed: ArrayLike | None = None,
) -> NDArray[np.int64]:
    """Count the codes at each distance from every query; their running sums are the counts within each radius.

    Parameters
    ----------
    queries, database : BinaryCodes
        Of the same length.
    n_threads : int, optional
        At most so many threads; all cores of this process by default.
    allowed : bool array of shape (len(database),), optional
        Which items are counted.

    Returns
    -------
    int64 array of shape (len(queries), n_bits + 1)

    Examples
    --------
    >>> codes = BinaryCodes.from_signs([[1, 1], [1, -1], [-1, -1]])
    >>> count_distances(codes[:1], codes)
    array([[1, 1, 1]])
    >>> count_distances(codes[:1], codes).cumsum(axis=1)  # within radius 0, 1 and 2
    array([[1, 2, 3]])
    """
    where = "count_distances"
    check_code_pair(queries, database, where=where)
    bitmap = _bitmap(allowed, len(database), where=where)
    return kernels.distance_counts(
        queries.words, database.words, database.n_bits, allowed=bitmap, n_threads=n_threads, where=where
    )


def _freeze(*arrays: NDArray[np.generic]) -> None:
    for array in arrays:
        array.flags.writeable = False


def check_code_pair(
    queries: object, database: object, *, where: str, names: tuple[str, str] = ("queries", "database")
) -> None:
    """Refuse what is no pair of codes of one length.

    Parameters
    ----------
    queries, database : object
        What should be BinaryCodes.
    where : str
        Who asks.
    names : tuple of str
        What the two arguments are called there.
    """
    for name, codes in zip(names, (queries, database), strict=True):
        if not isinstance(codes, BinaryCodes):
            remedy = "BinaryCodes.from_signs, from_bools and from_bytes make them."
            raise invalid_type(where, f"{name} must be BinaryCodes", f"a {type(codes).__name__}", remedy)
    assert isinstance(queries, BinaryCodes) and isinstance(database, BinaryCodes)
    if queries.n_bits != database.n_bits:
        raise invalid(
            where,
            f"{names[0]} and {names[1]} must have the same number of bits",
            f"{queries.n_bits} and {database.n_bits}",
            "Encode both with the same model.",
        )


def _bitmap(allowed: ArrayLike | None, n_items: int, *, where: str) -> NDArray[np.uint64] | None:
    """Pack a filter as the kernels want it."""
    if allowed is None:
        return None
    expected = f"allowed must be a bool array of shape ({n_items},), one for each item of the database"
    mask = read_array(allowed, where=where, expected=expected)
    if mask.dtype != np.bool_ and not (mask.size == 0 and n_items == 0):
        remedy = "From ids: allowed = np.zeros(len(database), bool); allowed[ids] = True."
        raise invalid_type(where, expected, f"dtype {mask.dtype}", remedy)
    if mask.shape != (n_items,):
        raise invalid(where, expected, f"shape {mask.shape}")
    octets = np.zeros(-(-n_items // 64) * 8, dtype=np.uint8)
    octets[: -(-n_items // 8)] = np.packbits(mask.astype(bool, copy=False), bitorder="little")
    return octets.view("<u8").astype(np.uint64, copy=False)
