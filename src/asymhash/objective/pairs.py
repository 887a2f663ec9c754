"""What one more bit can gain on all pairs, as products with M that are made from packed codes and never hold M.

M_ij is an entry of one of two tables, by the distance of two codes: one for similar, one for dissimilar pairs. There
are three ways to sum M x, chosen by their cost: for short codes by a transform over all codes, else by looking up
every pair; both use the table of dissimilar pairs for all of them and correct the few similar ones. Where these are not
few, both tables are looked up, and one bit a pair says which holds.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from asymhash import kernels
from asymhash.kernels import training
from asymhash.objective.dense_pairs import DensePairs
from asymhash.objective.loss import GainTables
from asymhash.similarity import Similarity

__all__ = ["Gains", "PackedPairs", "Pairs", "pairs_of"]

Signs = NDArray[np.int8]
Words = NDArray[np.uint64]
Positives = tuple[NDArray[np.int64], NDArray[np.int32]]

# Measured by benchmarks/products.py, in nanoseconds on one thread: a pair of the look-up kernel costs _PAIR plus _PLANE
# for every 16 bits, an entry of the transform _ENTRY plus _STEP for each bit beyond 16 (it leaves the cache), an item
# that is put in or read out _ITEM, a similar pair that is corrected _POSITIVE.
_PAIR, _PLANE = 0.0065, 0.0065
_ENTRY, _STEP, _ITEM = 1.5, 0.8, 3.0
_POSITIVE = 1.2
# From this share of similar pairs on, one bit a pair takes no more memory than their list (32 bits each).
_DENSE_SHARE = 1 / 32

# Fixed point: the largest entry of a table becomes _LARGEST; the upper 16 bits are the first table of the look-up
# kernel, the lower 16 the second.
_HALF = 1 << 16
_LARGEST = 32766 * _HALF


class Gains(Protocol):
    """The matrix M, seen only through its products and, for small problems, single entries."""

    @property
    def shape(self) -> tuple[int, int]:
        """Queries x items."""

    def times(self, v: NDArray[Any]) -> NDArray[np.float64]:
        """M v, one number for each query."""

    def transposed_times(self, u: NDArray[Any]) -> NDArray[np.float64]:
        """M' u, one number for each item."""

    def row(self, query: int) -> NDArray[np.float64]:
        """M of one query, (n_items,)."""

    def column(self, item: int) -> NDArray[np.float64]:
        """M of one item, (n_queries,)."""

    def diagonal(self) -> NDArray[np.float64]:
        """M_ii of a square M."""


class Pairs(Protocol):
    """All pairs of training queries and items under the bits learned so far."""

    n_bits: int

    def add(self, u: Signs, v: Signs, *, at: int | None = None) -> None:
        """Take in one more bit, at the end or at a position that `remove` left."""

    def remove(self, position: int) -> None:
        """Take out the bit at a position."""

    def histograms(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count similar and dissimilar pairs at each distance 0..n_bits."""

    def gains(self, tables: GainTables, *, exact: bool = False) -> Gains:
        """M for the present bits (which must not contain the bit in question); exact: signs near zero are right."""


def pairs_of(similarity: Similarity, n_bits_at_most: int) -> Pairs:
    """Pairs without bits yet: packed, or in plain NumPy where the kernels' reference is forced."""
    if kernels.level() == kernels.REFERENCE:
        return DensePairs(similarity, n_bits_at_most)
    return PackedPairs(similarity, n_bits_at_most)


class PackedPairs:
    """Packed codes of both sides and their similarity: memory of m + n codes and the similar pairs."""

    def __init__(self, similarity: Similarity, n_bits_at_most: int) -> None:
        n_words = -(-max(1, n_bits_at_most) // kernels.WORD_BITS)
        self.similarity = similarity
        self.n_bits = 0
        self.query_words = np.zeros((similarity.n_queries, n_words), dtype=np.uint64)
        self.item_words = np.zeros((similarity.n_items, n_words), dtype=np.uint64)
        # Bits 0..n_bits-1 of the words are always full: the last one moves to where another was taken out.
        self._places: list[int | None] = []
        self._by_item: Positives | None = None
        self._masks: dict[str, NDArray[np.uint8]] = {}
        self._gains: PackedGains | None = None

    def add(self, u: Signs, v: Signs, *, at: int | None = None) -> None:
        """Take in one more bit, at the end or at a position that `remove` left."""
        training.set_bit(self.query_words, self.n_bits, np.ascontiguousarray(u, dtype=np.int8))
        training.set_bit(self.item_words, self.n_bits, np.ascontiguousarray(v, dtype=np.int8))
        if at is None:
            self._places.append(self.n_bits)
        else:
            self._places[at] = self.n_bits
        self.n_bits += 1

    def remove(self, position: int) -> None:
        """Take out the bit at a position."""
        place, last = self._places[position], self.n_bits - 1
        assert place is not None
        training.drop_bit(self.query_words, place, last)
        training.drop_bit(self.item_words, place, last)
        self._places[self._places.index(last)] = place
        self._places[position] = None
        self.n_bits = last

    def histograms(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count similar and dissimilar pairs at each distance 0..n_bits."""
        sides = self.query_words, self.item_words
        # A count takes about as long as ten look-ups, a correlation two transforms as a product does.
        count = training.walsh_histogram if self.is_short(pair_cost=10) else training.pair_histogram
        every = count(*sides, self.n_bits)
        similar = training.positives_histogram(*sides, self.by_query, self.n_bits)
        return similar, every - similar

    def gains(self, tables: GainTables, *, exact: bool = False) -> PackedGains:
        """M for the present bits (which must not contain the bit in question); looked-up signs are always right."""
        if self._gains is None or not self._gains.is_for(
            tables
        ):  # a sweep asks with the same tables for every bit
            self._gains = PackedGains(self, tables)
        return self._gains

    def is_short(self, pair_cost: float = 1.0) -> bool:
        """Whether a transform of all codes is faster than a pass over all pairs; from sizes alone, never threads."""
        k, (m, n) = self.n_bits, self.similarity.shape
        # What the transform counts must stay below 2^62.
        if k > training.MAX_WALSH_BITS or k + np.log2(max(1, m)) + np.log2(max(1, n)) > 61:
            return False
        transform = (_ENTRY + _STEP * max(0, k - 16)) * 2.0**k + _ITEM * (m + n)
        if self.has_masks and pair_cost == 1.0:
            transform += _POSITIVE * self.similarity.n_positives
        return bool(transform < pair_cost * (_PAIR + _PLANE * -(-k // 16)) * m * n)

    @cached_property
    def has_masks(self) -> bool:
        """Whether similar pairs are looked up by a mask; slower than their list below AVX-512.

        The signs of sums are the same; by a mask the sums themselves have the upper halves of the tables alone, except
        near zero, and differ in the fifth digit.
        """
        return self.similarity.share_positive >= _DENSE_SHARE and kernels.level() == "avx512"

    @property
    def by_query(self) -> Positives:
        """Similar items of each query."""
        return self.similarity.indptr, self.similarity.indices.astype(np.int32, copy=False)

    @property
    def by_item(self) -> Positives:
        """Similar queries of each item."""
        if self._by_item is None:
            if self.similarity.is_symmetric():  # neighbours and labels of one set: half the memory
                self._by_item = self.by_query
            else:
                transposed = self.similarity.transpose()
                self._by_item = transposed.indptr, transposed.indices.astype(np.int32, copy=False)
        return self._by_item

    def mask(self, side: str) -> NDArray[np.uint8]:
        """Similar pairs as bits, in rows of the queries ("by_query") or of the items ("by_item")."""
        if side == "by_item" and self.by_item[0] is self.similarity.indptr:
            side = "by_query"
        if side not in self._masks:
            n_columns = self.similarity.n_items if side == "by_query" else self.similarity.n_queries
            self._masks[side] = training.mask_pairs(getattr(self, side), n_columns)
        return self._masks[side]


class PackedGains:
    """M for the bits that `PackedPairs` holds; valid until they change."""

    def __init__(self, pairs: PackedPairs, tables: GainTables) -> None:
        self._pairs = pairs
        self._tables = tables
        self._n_bits = pairs.n_bits
        self._is_short = pairs.is_short()
        if not self._is_short:
            largest = max(float(np.abs(table).max()) for table in tables)
            self._scale = _LARGEST / max(largest, 1e-300)
            similar, dissimilar = (np.rint(table * self._scale).astype(np.int64) for table in tables)
            self._similar, self._dissimilar = _halves(similar), _halves(dissimilar)
            self._correction = similar - dissimilar

    def is_for(self, tables: GainTables) -> bool:
        """Whether these gains, made earlier, are those of `tables` and of the present number of bits."""
        return self._tables is tables and self._n_bits == self._pairs.n_bits

    @property
    def shape(self) -> tuple[int, int]:
        """Queries x items."""
        return self._pairs.similarity.shape

    def times(self, v: NDArray[Any]) -> NDArray[np.float64]:
        """M v, one number for each query; exact in its sign for signs, to three digits for other numbers."""
        pairs = self._pairs
        return self._product(pairs.query_words, pairs.item_words, "by_query", v)

    def transposed_times(self, u: NDArray[Any]) -> NDArray[np.float64]:
        """M' u, one number for each item; exact in its sign for signs, to three digits for other numbers."""
        pairs = self._pairs
        return self._product(pairs.item_words, pairs.query_words, "by_item", u)

    def row(self, query: int) -> NDArray[np.float64]:
        """M of one query, (n_items,)."""
        pairs = self._pairs
        return self._entries(pairs.query_words[query], pairs.item_words, pairs.by_query, query)

    def column(self, item: int) -> NDArray[np.float64]:
        """M of one item, (n_queries,)."""
        pairs = self._pairs
        return self._entries(pairs.item_words[item], pairs.query_words, pairs.by_item, item)

    def diagonal(self) -> NDArray[np.float64]:
        """M_ii of a square M."""
        pairs = self._pairs
        distances = np.bitwise_count(pairs.query_words ^ pairs.item_words).sum(axis=1)
        indptr, indices = pairs.by_query
        owners = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        is_similar = np.zeros(len(distances), dtype=bool)
        is_similar[owners[owners == indices]] = True
        diagonal: NDArray[np.float64] = self._tables.dissimilar[distances]
        diagonal[is_similar] = self._tables.similar[distances[is_similar]]
        return diagonal

    def _entries(self, code: Words, others: Words, positives: Positives, number: int) -> NDArray[np.float64]:
        distances = kernels.hamming_distances(code[None], others)[0]
        entries: NDArray[np.float64] = self._tables.dissimilar[distances]
        indptr, indices = positives
        similar = indices[indptr[number] : indptr[number + 1]]
        entries[similar] = self._tables.similar[distances[similar]]
        return entries

    def _product(self, rows: Words, columns: Words, side: str, x: NDArray[Any]) -> NDArray[np.float64]:
        if self._is_short:
            return self._transformed(rows, columns, side, np.ascontiguousarray(x, dtype=np.float64))
        if x.dtype == np.int8:
            whole, unit = x.astype(np.int16), 1.0
        else:
            unit = float(np.abs(x).max(initial=0.0)) / training.MAX_WEIGHT or 1.0
            whole = np.rint(x / unit).astype(np.int16)
        total = self._looked_up(rows, columns, side, whole)
        if x.dtype == np.int8:
            # What the lower halves can add is at most half a unit of the upper ones for each item: where that could
            # turn the sign, it is added.
            sizes, bound = np.abs(total), len(columns) * (_HALF // 2)
            if sizes.min(initial=bound + 1) <= bound:
                near = np.flatnonzero(sizes <= bound)
                total[near] += self._rest(rows, columns, side, near, whole)
        return np.multiply(total, unit / self._scale)

    def _transformed(
        self, rows: Words, columns: Words, side: str, x: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        n_bits, (similar, dissimilar) = self._pairs.n_bits, self._tables
        total = training.walsh_product(rows, columns, n_bits, dissimilar, x)
        positives = getattr(self._pairs, side)
        return total + training.positives_product_real(
            rows, columns, positives, n_bits, similar - dissimilar, x
        )

    def _looked_up(self, rows: Words, columns: Words, side: str, x: NDArray[np.int16]) -> NDArray[np.int64]:
        pairs = self._pairs
        if pairs.has_masks:
            tables = self._dissimilar.upper, self._similar.upper
            return training.masked_product(rows, columns, pairs.mask(side), pairs.n_bits, tables, x) * _HALF
        total = training.lookup_product(rows, columns, pairs.n_bits, self._dissimilar.upper, x) * _HALF
        return total + training.positives_product(
            rows, columns, getattr(pairs, side), pairs.n_bits, self._correction, x
        )

    def _rest(
        self, rows: Words, columns: Words, side: str, chosen: NDArray[np.int64], x: NDArray[np.int16]
    ) -> NDArray[np.int64]:
        """Sum what the lower halves of the tables add to some rows."""
        pairs = self._pairs
        if pairs.has_masks:
            tables = self._dissimilar.lower, self._similar.lower
            mask = pairs.mask(side)[chosen]
            return training.masked_product(rows[chosen], columns, mask, pairs.n_bits, tables, x)
        return training.lookup_product(rows[chosen], columns, pairs.n_bits, self._dissimilar.lower, x)


class _Halves(NamedTuple):
    """A table of whole numbers as upper * 2^16 + lower, both of 16 bits with a sign."""

    upper: NDArray[np.int16]
    lower: NDArray[np.int16]


def _halves(table: NDArray[np.int64]) -> _Halves:
    upper = (table + _HALF // 2) // _HALF
    return _Halves(upper.astype(np.int16), (table - upper * _HALF).astype(np.int16))
