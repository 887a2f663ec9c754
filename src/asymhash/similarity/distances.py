"""Euclidean distances between two sets of vectors, block by block, exact at every comparison.

The distance of a pair is *defined* as the float64 square root of the float64 sum of squared direct
differences, which no block size, thread count or BLAS can change. A matrix product gives the squares of all
distances of a block much faster, but with rounding errors that do depend on those; so it only sorts out the
pairs whose comparison is certain in spite of the errors (`PairDistances.tolerance` bounds them), and the rest
are computed by definition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PairDistances", "Tile"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

DEFAULT_BLOCK_SIZE = 2048  # a tile of squares is then 32 MiB
_DIRECT_NUMBERS = 1 << 20  # direct differences held at once: 8 MiB each for the differences and their squares
_READ_ROWS = 4096


@dataclass(frozen=True, slots=True)
class Tile:
    """One block of pairs; `is_mirrored` where it stands for its transposed block too."""

    rows: slice
    columns: slice
    is_mirrored: bool

    @property
    def is_diagonal(self) -> bool:
        """Whether the tile holds the pairs of points with themselves (meaningful in the self case only)."""
        return self.rows == self.columns


class PairDistances:
    """Distances between queries and database items; database None means the queries themselves ("self case").

    Parameters
    ----------
    queries : array of shape (m, d)
    database : array of shape (n, d) or None
    block_size : int or None
        Rows and columns of a tile; never changes a result.
    """

    def __init__(
        self,
        queries: NDArray[Any],
        database: NDArray[Any] | None,
        block_size: int | None,
    ) -> None:
        self.is_self = database is None
        self.queries = queries
        self.items = queries if database is None else database
        self.n_queries: int = self.queries.shape[0]
        self.n_items: int = self.items.shape[0]
        self.block_size = DEFAULT_BLOCK_SIZE if block_size is None else block_size
        # The distance does not depend on the origin, the rounding error of the product does: centre first.
        self._centre = _mean(self.items)
        self._query_squares = self._squares(self.queries)
        self._item_squares = self._query_squares if self.is_self else self._squares(self.items)
        self.largest_square = 2 * float(self._query_squares.max() + self._item_squares.max())
        # Products of d + 2 terms, the norms, the centring and the direct form each err by at most
        # (d + 3) eps (|x|^2 + |y|^2); twice their sum leaves a margin.
        eps = float(np.finfo(np.float64).eps)
        self.tolerance = (4 * self.queries.shape[1] + 40) * eps * self.largest_square + 1e-300

    def tiles(self) -> Iterator[Tile]:
        """Yield tiles that cover all pairs; in the self case the upper triangle, mirrored tiles marked."""
        for rows in self.row_blocks():
            for columns in _slices(self.n_items, self.block_size):
                if not self.is_self or columns.start >= rows.start:
                    yield Tile(rows, columns, self.is_self and columns.start > rows.start)

    def row_blocks(self) -> Iterator[slice]:
        """Yield blocks of queries."""
        return _slices(self.n_queries, self.block_size)

    def full_rows(self, rows: slice) -> Iterator[tuple[slice, Floats]]:
        """Yield, for one block of queries, every block of items with the squares, shape (rows, columns)."""
        queries = self._query_factor(rows)
        for columns in _slices(self.n_items, self.block_size):
            yield columns, queries @ self._item_factor(columns).T

    def squares(self, tile: Tile) -> Floats:
        """Return the squared distances of a tile, each within `tolerance` of its definition."""
        return self._query_factor(tile.rows) @ self._item_factor(tile.columns).T

    def direct(self, rows: NDArray[np.integer[Any]], columns: NDArray[np.integer[Any]]) -> Floats:
        """Return the distances of some pairs by definition, shape (pairs,)."""
        distances = np.empty(rows.size, dtype=np.float64)
        step = max(1, _DIRECT_NUMBERS // self.queries.shape[1])
        for start in range(0, rows.size, step):
            part = slice(start, start + step)
            difference = self.queries[rows[part]].astype(np.float64)
            difference -= self.items[columns[part]].astype(np.float64)
            difference *= difference
            distances[part] = difference.sum(axis=1)
        return np.sqrt(distances, out=distances)

    def _query_factor(self, rows: slice) -> Floats:
        # [-2x, |x|^2, 1] [y, 1, |y|^2]' = |x - y|^2: no passes over the tile to add the norms.
        vectors = self.queries[rows].astype(np.float64) - self._centre
        vectors *= -2.0
        return np.column_stack([vectors, self._query_squares[rows], np.ones(vectors.shape[0])])

    def _item_factor(self, columns: slice) -> Floats:
        vectors = self.items[columns].astype(np.float64) - self._centre
        return np.column_stack([vectors, np.ones(vectors.shape[0]), self._item_squares[columns]])

    def _squares(self, vectors: NDArray[Any]) -> Floats:
        parts = []
        for block in _slices(vectors.shape[0], _READ_ROWS):
            centred = vectors[block].astype(np.float64) - self._centre
            parts.append(np.einsum("ij,ij->i", centred, centred))
        return np.concatenate(parts)


def _slices(size: int, step: int) -> Iterator[slice]:
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))


def _mean(vectors: NDArray[Any]) -> Floats:
    total = np.zeros(vectors.shape[1])
    for block in _slices(vectors.shape[0], _READ_ROWS):
        total += vectors[block].sum(axis=0, dtype=np.float64)
    mean: Floats = total / vectors.shape[0]
    return mean
