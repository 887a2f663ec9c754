"""Which distance separates: a pair of given rank among all pairs, or the k-th neighbour of each query."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asymhash.similarity.distances import Floats, PairDistances, Precision
from asymhash.similarity.scanning import Bounds, Collected, FoundTile, collect, panels, scan

__all__ = ["Pooled", "Sample", "pooled_radius"]

_SAMPLE_QUERIES = 256
_SAMPLE_ITEMS = 8192
# A pair by definition takes as long as about 500 in float64 products instead of float32 ones.
_FEW_UNCERTAIN = 1 / 512
_MOST_COLLECTED = 1 << 25  # pairs kept, 10 bytes each in float32
_BINS = 1 << 12
_FEW_PAIRS = 1 << 17  # so many may be computed by definition without being noticed in the running time


class Sample:
    """Squares of some pairs: where to look first, and in which precision. Results do not depend on it."""

    def __init__(self, pairs: PairDistances) -> None:
        rng = np.random.default_rng(0)
        rows = np.sort(rng.permutation(pairs.n_queries)[:_SAMPLE_QUERIES])
        columns = np.sort(rng.permutation(pairs.n_items)[:_SAMPLE_ITEMS])
        squares = pairs.squares(rows, columns, pairs.double)
        if pairs.is_self and pairs.n_items > 1:
            squares = squares[rows[:, None] != columns]
        self._pairs = pairs
        self._squares: Floats = np.sort(squares.ravel())
        self.size = self._squares.size

    def square_of(self, share: float, spare: int = 0) -> float:
        """Return the square below which this share of the sample lies, and some entries more."""
        place = math.ceil(share * self.size) + spare
        return float(self._squares[place - 1]) if place <= self.size else self._pairs.largest_square

    def precision_for(self, square: float) -> Precision:
        """Return float32 where few pairs are too near to a square for it to tell on which side they are."""
        single = self._pairs.single
        if single is None:
            return self._pairs.double
        ends = np.searchsorted(self._squares, [square - 2 * single.tolerance, square + 2 * single.tolerance])
        return single if ends[1] - ends[0] <= _FEW_UNCERTAIN * self.size else self._pairs.double


@dataclass(frozen=True)
class Pooled:
    """The radius found, and in which precision; for each panel the pairs that may be within it, if kept."""

    radius: float
    precision: Precision
    kept: list[Collected] | None


def pooled_radius(pairs: PairDistances, average: float) -> Pooled:
    """Find the smallest radius with at least `average` items per query on average, itself not counted.

    A sample tells how far to look. One pass keeps all pairs that near, sorts out the one of the wanted rank,
    and leaves the others to those who want all pairs within the radius. Where they are too many to be kept,
    histograms narrow down where the pair of the wanted rank is; memory then does not grow with the rank.
    """
    rank = _smallest_count(average, pairs.n_queries)
    sample = Sample(pairs)
    share = rank / (pairs.n_queries * (pairs.n_items - pairs.is_self))
    precision = sample.precision_for(sample.square_of(share))
    spare = math.ceil(share * sample.size) + 16
    for _ in range(2):
        high = sample.square_of(share, spare) + 2 * precision.tolerance
        room = _MOST_COLLECTED - pairs.n_queries
        if (share * sample.size + spare) / sample.size * pairs.n_queries * pairs.n_items > room:
            break
        found = _collected_radius(pairs, rank, precision, high)
        if found is not None:
            return found
        spare *= 8  # the sample said too little: look farther once, then by histograms
    low, high = _narrow(pairs, rank, precision, sample.square_of(0.9 * share), sample.square_of(1.1 * share))
    radius = _radius_between(pairs, rank, precision, low, high)
    if radius is None:  # the sample's bounds were too near to each other to be looked at, and wrong
        low, high = _narrow(pairs, rank, precision, 0.0, pairs.largest_square)
        radius = _radius_between(pairs, rank, precision, low, high)
    assert radius is not None
    return Pooled(radius, precision, None)


def _collected_radius(pairs: PairDistances, rank: int, precision: Precision, high: float) -> Pooled | None:
    """Find the radius among the pairs whose square is at most `high`; None where it is not among them."""
    margin = precision.tolerance
    # A point and itself come before all others, so that they are kept and shift the rank.
    rank += pairs.n_queries * pairs.is_self
    bounds = Bounds(-np.inf, high + 2 * margin, own=-np.inf)
    kept: list[Collected] = []
    left: float = _MOST_COLLECTED
    for panel in panels(pairs):
        part = collect(pairs, panel, precision, bounds, left)
        if part is None:
            return None
        kept.append(part)
        left -= part.values.size
    values = np.concatenate([part.values for part in kept])
    if values.size < rank:
        return None
    values.partition(rank - 1)
    square = float(values[rank - 1])
    if square + margin > high:
        return None
    # The truth is within the tolerance of this square; pairs farther away than twice that are on their side of it.
    # Both in the dtype of the values: else a pair at a bound could be counted on either side of it, or on none.
    first, last = values.dtype.type(square - 2 * margin), values.dtype.type(square + 2 * margin)
    before = int(np.count_nonzero(values < first))
    open_ = [np.flatnonzero((part.values >= first) & (part.values <= last)) for part in kept]
    distances = np.concatenate(
        [pairs.direct(*part.pairs(which)) for part, which in zip(kept, open_, strict=True)]
    )
    distances.partition(rank - 1 - before)
    return Pooled(float(distances[rank - 1 - before]), precision, kept)


def _narrow(
    pairs: PairDistances, rank: int, precision: Precision, low: float, high: float
) -> tuple[float, float]:
    """Return bounds of the square of the pair with this rank, few pairs or one distance between them."""
    pad = precision.tolerance
    low, high = low - pad, high + pad
    while high - low > 8 * pad:
        width = (high - low) / _BINS

        def counts_of(
            tile: FoundTile, low: float = low, width: float = width
        ) -> tuple[int, NDArray[np.int64]]:
            places = ((tile.found.values - low) / width).astype(np.int32)
            np.clip(places, 0, _BINS - 1, out=places)
            return int(tile.found.below.sum()), np.bincount(places, minlength=_BINS)

        below, histogram = 0, np.zeros(_BINS, dtype=np.int64)
        for panel in panels(pairs):
            for less, counts in scan(pairs, panel, precision, Bounds(low, high, own=np.inf), counts_of):
                below += less
                histogram += counts
        if rank <= below:
            low, high = -pad, low + pad
        elif rank > below + int(histogram.sum()):
            low, high = high - pad, pairs.largest_square + pad
        else:
            found = int(np.searchsorted(np.cumsum(histogram), rank - below))
            low, high = low + found * width - pad, low + (found + 1) * width + pad
            if histogram[found] <= _FEW_PAIRS:
                break
    return low, high


def _radius_between(
    pairs: PairDistances, rank: int, precision: Precision, low: float, high: float
) -> float | None:
    """Return the distance of this rank by definition of all whose square is between two bounds, if it is there."""
    margin = 2 * precision.tolerance

    def direct_of(tile: FoundTile) -> tuple[int, Floats, NDArray[np.int64]]:
        every = np.arange(tile.found.columns.size)
        # Ties by the million are the normal case on integer data: keep each distance once, with its count.
        distances, counts = np.unique(pairs.direct(*tile.pairs(every)), return_counts=True)
        return int(tile.found.below.sum()), distances, counts

    below = 0
    distances, counts = np.empty(0), np.empty(0, dtype=np.int64)
    bounds = Bounds(low - margin, high + margin, own=np.inf)
    for panel in panels(pairs):
        for less, some, sizes in scan(pairs, panel, precision, bounds, direct_of):
            below += less
            if some.size:
                merged, places = np.unique(np.concatenate([distances, some]), return_inverse=True)
                weights = np.concatenate([counts, sizes])
                counts = np.bincount(places, weights=weights, minlength=merged.size).astype(np.int64)
                distances = merged
    places = below + np.cumsum(counts)
    if not distances.size or rank <= below or rank > places[-1]:
        return None
    radius = float(distances[np.searchsorted(places, rank)])
    # Pairs that were not looked at are surely beyond these bounds, on either side.
    is_between = low - precision.tolerance <= radius * radius <= high + precision.tolerance
    return radius if is_between else None


def _smallest_count(average: float, n_queries: int) -> int:
    """Return the smallest count whose mean over queries is, as a float64, at least `average`."""
    count = math.ceil(average * n_queries)
    while count > 1 and (count - 1) / n_queries >= average:
        count -= 1
    while count / n_queries < average:
        count += 1
    return count
