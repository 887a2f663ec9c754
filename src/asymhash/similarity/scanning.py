"""One pass over all pairs: a product for each tile, and what lies between two bounds of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from asymhash.kernels import Between, select_between
from asymhash.similarity.distances import Floats, Ids, PairDistances, Precision
from asymhash.workers import in_threads

__all__ = ["Bounds", "Collected", "FoundTile", "collect", "panels", "scan"]

Result = TypeVar("Result")

# A tile of float32 squares is 2 MiB: OpenBLAS is at full speed from there on, and the kernel that reads it
# finds it in the cache. One strip of items is converted once for all tiles of a panel of queries.
_TILE_ROWS = 256
_STRIP_ITEMS = 2048
_PANEL_ROWS = 1 << 14
_PANEL_NUMBERS = 1 << 24  # at most 64 MiB of float32
_MOST_PANEL_ROWS = 1 << 16  # a place in a panel is kept in 16 bits, whatever the block size


@dataclass(frozen=True)
class Bounds:
    """Bounds of squares, for every row of a panel alike or one by one; compared as the product rounds them."""

    low: float | Floats
    high: float | Floats
    own: float = 0.0  # what a point's square with itself is put to (self case)


@dataclass(frozen=True)
class FoundTile:
    """The squares of one tile between the bounds.

    `first` is where the tile's rows begin in the panel, `rows` are the queries, `start` the first item.
    """

    first: int
    rows: Ids
    start: int
    found: Between

    @property
    def stop(self) -> int:
        """Where the tile's rows end in the panel."""
        return self.first + self.rows.size

    @cached_property
    def owners(self) -> Ids:
        """Row within the tile of every square found."""
        return np.repeat(np.arange(self.rows.size), self.found.inside)

    def pairs(self, which: NDArray[Any]) -> tuple[Ids, Ids]:
        """Return the queries and the items of some of the squares found."""
        return self.rows[self.owners[which]], self.found.columns[which].astype(np.int64) + self.start


def panels(pairs: PairDistances, at_most: int | None = None) -> Iterator[Ids]:
    """Yield all queries in groups, in order."""
    size = min(_PANEL_ROWS, max(_TILE_ROWS, _PANEL_NUMBERS // pairs.queries.shape[1]))
    if pairs.block_size is not None:
        size = min(pairs.block_size, _MOST_PANEL_ROWS)
    if at_most is not None:
        size = max(1, min(size, at_most))
    for start in range(0, pairs.n_queries, size):
        yield np.arange(start, min(start + size, pairs.n_queries))


def scan(
    pairs: PairDistances,
    panel: Ids,
    precision: Precision,
    bounds: Bounds,
    work: Callable[[FoundTile], Result],
) -> Iterator[Result]:
    """Yield what `work` makes of every tile of some queries with all items: strips in order, rows in order."""
    strip = pairs.block_size or _STRIP_ITEMS
    factor = pairs.query_factor(panel, precision)
    low, high = (
        np.broadcast_to(np.asarray(bound, dtype=precision.dtype), panel.shape)
        for bound in (bounds.low, bounds.high)
    )
    step = pairs.block_size or _TILE_ROWS

    def tiles_of(start: int) -> list[Result]:
        items = pairs.item_factor(slice(start, start + strip), precision).T
        return [tile_of(slice(first, first + step), start, items) for first in range(0, panel.size, step)]

    def tile_of(part: slice, start: int, items: NDArray[Any]) -> Result:
        rows = panel[part]
        squares = factor[part] @ items
        if pairs.is_self:
            own = np.flatnonzero((rows >= start) & (rows < start + squares.shape[1]))
            squares[own, rows[own] - start] = bounds.own
        return work(FoundTile(part.start, rows, start, select_between(squares, low[part], high[part])))

    for results in in_threads(tiles_of, range(0, pairs.n_items, strip)):
        yield from results


@dataclass(frozen=True)
class Collected:
    """All squares of some queries between the bounds, strip after strip: 10 bytes each in float32."""

    rows: Ids
    owners: NDArray[np.uint16]  # places in `rows`
    items: NDArray[np.int32]
    values: NDArray[Any]

    def pairs(self, which: NDArray[Any]) -> tuple[Ids, Ids]:
        """Return the queries and the items of some of the squares."""
        return self.rows[self.owners[which]], self.items[which].astype(np.int64)

    def chosen(self, which: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return how many items of each query are among some of the squares, and the items query by query."""
        owners = self.owners[which]
        # Items of a query lie in increasing order, and a stable sort leaves them so.
        items = self.items[which][np.argsort(owners, kind="stable")]
        return np.bincount(owners, minlength=self.rows.size), items


def collect(
    pairs: PairDistances, panel: Ids, precision: Precision, bounds: Bounds, at_most: float = np.inf
) -> Collected | None:
    """Collect the squares of some queries between the bounds; None as soon as there are more than `at_most`."""

    def parts_of(tile: FoundTile) -> tuple[NDArray[np.uint16], NDArray[np.int32], NDArray[Any]]:
        owners = (tile.owners + tile.first).astype(np.uint16)
        return owners, tile.found.columns + np.int32(tile.start), tile.found.values

    nothing = np.empty(0, dtype=precision.dtype)
    parts = [(nothing.astype(np.uint16), nothing.astype(np.int32), nothing)]
    size = 0
    for part in scan(pairs, panel, precision, bounds, parts_of):
        if part[0].size:
            parts.append(part)
            size += part[0].size
            if size > at_most:
                return None
    owners, items, values = zip(*parts, strict=True)
    return Collected(panel, np.concatenate(owners), np.concatenate(items), np.concatenate(values))
