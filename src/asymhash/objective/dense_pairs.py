"""The plain NumPy path of the training: every pair's Hamming distance, and products with M from blocks of M.

Obviously right, and slow: it is what the compiled path (`PackedPairs`) is tested and measured against, and what a fit
uses under ``kernels.force_level("reference")``. Distances take one byte a pair (two beyond 255 bits), everything in
floating point lives in blocks of bounded size. A small problem is one block, which is then kept between products.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from asymhash.objective.loss import GainTables
from asymhash.similarity import Similarity

__all__ = ["DenseGains", "DensePairs"]

# 2^22 pairs: 16 MiB of float32. Measured at n = 1000..20,000: larger blocks leave the cache and gain nothing.
_BLOCK_PAIRS = 1 << 22

Signs = NDArray[np.int8]


class DensePairs:
    """Hamming distances of all (query, item) pairs; bits are added and removed one at a time."""

    def __init__(self, similarity: Similarity, n_bits_at_most: int) -> None:
        self.similarity = similarity
        self.n_bits = 0
        self._by_item: Similarity | None = None
        self._bits: list[tuple[Signs, Signs] | None] = []
        self.distances: NDArray[np.unsignedinteger[Any]] = np.zeros(
            similarity.shape, dtype=np.uint8 if n_bits_at_most <= 255 else np.uint16
        )

    def add(self, u: Signs, v: Signs, *, at: int | None = None) -> None:
        """Take one more bit into the distances, u of all queries and v of all items; `at` a position left empty."""
        for rows in self._row_blocks():
            self.distances[rows] += u[rows, None] != v[None, :]
        self.n_bits += 1
        if at is None:
            self._bits.append((u, v))
        else:
            self._bits[at] = u, v

    def remove(self, position: int) -> None:
        """Take out one bit, by its position in the order in which bits were added."""
        bit = self._bits[position]
        assert bit is not None
        u, v = bit
        for rows in self._row_blocks():
            self.distances[rows] -= u[rows, None] != v[None, :]
        self.n_bits -= 1
        self._bits[position] = None

    def histograms(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count similar and dissimilar pairs at each distance 0..n_bits."""
        every = np.zeros(self.n_bits + 1, dtype=np.int64)
        similar = np.zeros(self.n_bits + 1, dtype=np.int64)
        for rows in self._row_blocks():
            block = self.distances[rows]
            every += np.bincount(block.ravel(), minlength=self.n_bits + 1)
            similar += np.bincount(block[self._positives(rows)], minlength=self.n_bits + 1)
        return similar, every - similar

    def gains(self, tables: GainTables, *, exact: bool = False) -> DenseGains:
        """M for the present bits (which must not contain the bit in question); exact: in float64."""
        return DenseGains(self, tables, np.float64 if exact else np.float32)

    def similar_queries(self, item: int) -> NDArray[np.integer[Any]]:
        """Return the queries that are similar to one item."""
        if self._by_item is None:
            self._by_item = self.similarity.transpose()
        start, stop = self._by_item.indptr[item : item + 2]
        return self._by_item.indices[start:stop]

    def _row_blocks(self) -> Iterator[slice]:
        n_queries, n_items = self.similarity.shape
        n_rows = max(1, _BLOCK_PAIRS // max(n_items, 1))
        for start in range(0, n_queries, n_rows):
            yield slice(start, min(start + n_rows, n_queries))

    def _positives(self, rows: slice) -> tuple[NDArray[np.int64], NDArray[np.integer[Any]]]:
        """Similar pairs of a block of rows, as (row inside the block, item)."""
        indptr = self.similarity.indptr[rows.start : rows.stop + 1]
        inside = np.repeat(np.arange(rows.stop - rows.start), np.diff(indptr))
        return inside, self.similarity.indices[indptr[0] : indptr[-1]]


class DenseGains:
    """The matrix M, seen only through its products; valid until the pair table changes."""

    def __init__(self, pairs: DensePairs, tables: GainTables, dtype: DTypeLike) -> None:
        self._pairs = pairs
        self._similar = tables.similar.astype(dtype)
        self._dissimilar = tables.dissimilar.astype(dtype)
        self._blocks = list(pairs._row_blocks())
        self._kept = self._block(self._blocks[0]) if len(self._blocks) == 1 else None

    @property
    def shape(self) -> tuple[int, int]:
        """Queries x items."""
        return self._pairs.similarity.shape

    def times(self, v: NDArray[Any]) -> NDArray[np.float64]:
        """M v, one number for each query."""
        v = v.astype(self._similar.dtype)
        return np.concatenate([block @ v for _, block in self.blocks()]).astype(np.float64)

    def transposed_times(self, u: NDArray[Any]) -> NDArray[np.float64]:
        """M' u, one number for each item."""
        u = u.astype(self._similar.dtype)
        total = np.zeros(self.shape[1])
        for rows, block in self.blocks():
            total += u[rows] @ block
        return total

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.floating[Any]]]]:
        """M in blocks of rows."""
        for rows in self._blocks:
            yield rows, self._block(rows) if self._kept is None else self._kept

    def row(self, query: int) -> NDArray[np.float64]:
        """M of one query, (n_items,)."""
        row: NDArray[np.float64] = self._block(slice(query, query + 1))[0].astype(np.float64)
        return row

    def column(self, item: int) -> NDArray[np.float64]:
        """M of one item, (n_queries,)."""
        is_similar = self._pairs.similar_queries(item)
        distances = self._pairs.distances[:, item]
        gain: NDArray[np.float64] = self._dissimilar[distances].astype(np.float64)
        gain[is_similar] = self._similar[distances[is_similar]]
        return gain

    def diagonal(self) -> NDArray[np.float64]:
        """M_ii of a square M."""
        return np.array([self.row(item)[item] for item in range(self.shape[0])])

    def _block(self, rows: slice) -> NDArray[np.floating[Any]]:
        distances = self._pairs.distances[rows]
        block: NDArray[np.floating[Any]] = self._dissimilar[distances]
        positives = self._pairs._positives(rows)
        block[positives] = self._similar[distances[positives]]
        return block
