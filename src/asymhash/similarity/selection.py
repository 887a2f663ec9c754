"""Which distance separates: a pair of given rank among all pairs, or the k-th neighbour of each query."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from asymhash.similarity.distances import Floats, PairDistances, Tile

__all__ = ["kth_distances", "kth_squares", "pooled_radius"]

_BINS = 1 << 18
_FEW_PAIRS = 1 << 17  # so many may be computed by definition without being noticed in the running time


def pooled_radius(pairs: PairDistances, average: float) -> float:
    """Return the smallest radius with at least `average` items per query on average, itself not counted.

    Histograms of squared distances narrow down where the pair of the wanted rank is; the few pairs near it
    are then computed by definition. Memory does not grow with the rank.
    """
    rank = _smallest_count(average, pairs.n_queries)
    low, high = _narrow(pairs, rank)
    margin = 2 * pairs.tolerance
    below = 0
    distances, counts = np.empty(0), np.empty(0, dtype=np.int64)
    for tile in pairs.tiles():
        squares = _without_diagonal(pairs, tile)
        weight = 2 if tile.is_mirrored else 1
        below += weight * int(np.count_nonzero(squares < low - margin))
        rows, columns = np.nonzero((squares >= low - margin) & (squares <= high + margin))
        direct = pairs.direct(rows + tile.rows.start, columns + tile.columns.start)
        # Ties by the million are the normal case on integer data: keep each distance once, with its count.
        merged, places = np.unique(np.concatenate([distances, direct]), return_inverse=True)
        weights = np.concatenate([counts, np.full(direct.size, weight)])
        counts = np.bincount(places, weights=weights, minlength=merged.size).astype(np.int64)
        distances = merged
    return float(distances[np.searchsorted(below + np.cumsum(counts), rank)])


def kth_distances(pairs: PairDistances, k: int) -> Floats:
    """Return each query's k-th smallest distance (itself counted in the self case), shape (m,)."""
    return np.concatenate([_kth_distances(pairs, rows, k) for rows in pairs.row_blocks()])


def kth_squares(pairs: PairDistances, rows: slice, k: int) -> Floats:
    """Return the k-th smallest square of each query of a block, within the tolerance, shape (rows,)."""
    smallest = np.full((rows.stop - rows.start, k), np.inf)
    for _, squares in pairs.full_rows(rows):
        # Most rows of a later tile have nothing that is small enough; `partition` would copy them in full.
        touched = np.flatnonzero(squares.min(axis=1) < smallest.max(axis=1))
        both = np.concatenate([smallest[touched], squares[touched]], axis=1)
        both.partition(k - 1, axis=1)
        smallest[touched] = both[:, :k]
    kth: Floats = smallest.max(axis=1)
    return kth


def _kth_distances(pairs: PairDistances, rows: slice, k: int) -> Floats:
    kth = kth_squares(pairs, rows, k)[:, None]
    margin = 2 * pairs.tolerance
    surely_before = np.zeros(kth.size, dtype=np.int64)
    near: list[tuple[NDArray[np.int64], Floats]] = []
    for columns, squares in pairs.full_rows(rows):
        surely_before += np.count_nonzero(squares < kth - margin, axis=1)
        found, items = np.nonzero((squares >= kth - margin) & (squares <= kth + margin))
        near.append((found, pairs.direct(found + rows.start, items + columns.start)))
    owner = np.concatenate([part[0] for part in near])
    distance = np.concatenate([part[1] for part in near])
    order = np.lexsort((distance, owner))
    starts = np.searchsorted(owner[order], np.arange(kth.size))
    chosen: Floats = distance[order][starts + (k - 1 - surely_before)]
    return chosen


def _smallest_count(average: float, n_queries: int) -> int:
    """Return the smallest count whose mean over queries is, as a float64, at least `average`."""
    count = math.ceil(average * n_queries)
    while count > 1 and (count - 1) / n_queries >= average:
        count -= 1
    while count / n_queries < average:
        count += 1
    return count


def _without_diagonal(pairs: PairDistances, tile: Tile) -> Floats:
    squares = pairs.squares(tile)
    if pairs.is_self and tile.is_diagonal:
        np.fill_diagonal(squares, np.inf)
    return squares


def _narrow(pairs: PairDistances, rank: int) -> tuple[float, float]:
    """Return bounds of the square of the pair with this rank, few pairs or one distance between them."""
    low, high = 0.0, pairs.largest_square
    while high - low > 8 * pairs.tolerance:
        width = (high - low) / _BINS
        histogram = np.zeros(_BINS + 2, dtype=np.int64)
        for tile in pairs.tiles():
            place = _without_diagonal(pairs, tile)
            place -= low
            place /= width
            place += 1.0
            np.clip(place, 0.0, _BINS + 1.0, out=place)
            counts = np.bincount(place.astype(np.int32).ravel(), minlength=_BINS + 2)
            if pairs.is_self and tile.is_diagonal:
                counts[_BINS + 1] -= tile.rows.stop - tile.rows.start
            histogram += 2 * counts if tile.is_mirrored else counts
        found = int(np.searchsorted(np.cumsum(histogram), rank))
        found = min(max(found, 1), _BINS)
        low, high = low + (found - 1) * width, low + found * width
        if histogram[found] <= _FEW_PAIRS:
            break
    return low, high
