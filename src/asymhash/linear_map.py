"""Vectors to codes by a linear threshold function: what a client needs, and all that it needs.

The projection of a vector is *defined* as the float64 sum of its products with the weights, in NumPy's own
order, plus the offset. A matrix product is much faster, but its last bits depend on the block, the threads and
the BLAS; so it only decides the signs that are certain in spite of its rounding, which `_Single` bounds, and
the rest are computed by definition. That lets `encode` use float32 products, whatever the dtype of the vectors,
and give the codes of float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asymhash.codes import BinaryCodes
from asymhash.kernels import pack_signs, row_squares
from asymhash.workers import in_threads

__all__ = ["LinearMap"]

# Numbers in a block of vectors: 1 MiB of float32, which stays in the second-level cache from the conversion
# through the norms to the product.
_BLOCK_VALUES = 1 << 18
_DIRECT_NUMBERS = 1 << 17  # products by definition held at once: 1 MiB
# From this share of uncertain signs on, a float64 product of the whole block is faster than definitions:
# 4 ns for a number by definition against 0.03 ns in a product.
_FEW_OPEN = 1 / 128


@dataclass(frozen=True, eq=False)
class _Single:
    """The map in float32: each row scaled by a power of two, and how far a product can be from the truth.

    With u half the distance from 1 to the next float32, a product of d terms in any order errs by at most
    d u / (1 - d u) |x| |w|, rounding x and w to float32 by u |x| |w| each, and rounding the offset by u |offset|.
    The hundredth on top leaves room for the bounds' own arithmetic, and keeps what is certain here farther from
    zero than float64 errs.
    """

    weights: NDArray[np.float32]  # (n_features, n_bits)
    threshold: NDArray[np.float32]
    slope: NDArray[np.float32]
    floor: NDArray[np.float32]

    @classmethod
    def of(cls, weights: NDArray[np.float64], offset: NDArray[np.float64]) -> _Single:
        d = weights.shape[1]
        exponents = np.frexp(np.abs(weights).max(axis=1))[1]
        scaled = np.ldexp(weights, -exponents[:, None])
        with np.errstate(over="ignore"):
            threshold = -np.ldexp(offset, -exponents)
            lengths = np.sqrt(np.einsum("td,td->t", scaled, scaled))
            u = 2.0**-24
            growth = 1.01 / (1.0 - min(0.5, (d + 8) * u))
            lost = 2.0**-149  # what underflow takes from one term
            slope = growth * (d + 5) * u * lengths + math.sqrt(d) * lost
            # Squares of numbers below 2^-75 vanish from the norm: sqrt(d) 2^-74 bounds what it may lack.
            floor = growth * u * np.abs(threshold) + math.sqrt(d) * (slope * 2.0**-74 + lengths * lost)
            floor += (d + 1) * lost
            return cls(
                np.ascontiguousarray(scaled.T.astype(np.float32)),
                threshold.astype(np.float32),
                np.nextafter(slope.astype(np.float32), np.float32(np.inf)),
                np.nextafter(floor.astype(np.float32), np.float32(np.inf)),
            )


@dataclass(frozen=True, eq=False)
class LinearMap:
    """A linear threshold function: bit t of x is set where <weights_t, x> + offset_t >= 0.

    Centring, scaling and PCA of the training are folded into the two arrays, so that a client needs nothing else.

    Parameters
    ----------
    weights : float64 array of shape (n_bits, n_features)
    offset : float64 array of shape (n_bits,)

    Examples
    --------
    >>> LinearMap(np.array([[1.0, 0.0]]), np.array([-0.5])).encode(np.array([[1.0, 9.0], [0.0, 9.0]])).to_signs()
    array([[ 1],
           [-1]], dtype=int8)
    """

    weights: NDArray[np.float64]
    offset: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name in ("weights", "offset"):
            array = np.array(getattr(self, name), dtype=np.float64, order="C")
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def n_features(self) -> int:
        """Length of the vectors that the map takes."""
        return int(self.weights.shape[1])

    @property
    def n_bits(self) -> int:
        """Length of the codes that the map gives."""
        return int(self.weights.shape[0])

    def project(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Return the real numbers whose signs are the bits, shape (n_items, n_bits)."""
        result = np.empty((len(vectors), self.n_bits))

        def project_block(block: slice) -> None:
            result[block] = self._double_block(vectors[block])[0]

        for _ in in_threads(project_block, self._blocks(len(vectors))):
            pass
        return result

    def encode(self, vectors: NDArray[Any]) -> BinaryCodes:
        """Return the codes of vectors, the signs of `project`, in blocks of bounded memory."""
        words = np.empty((len(vectors), -(-self.n_bits // 64)), dtype=np.uint64)

        def encode_block(block: slice) -> None:
            words[block] = self._single_block(vectors[block])

        for _ in in_threads(encode_block, self._blocks(len(vectors))):
            pass
        words.flags.writeable = False
        return BinaryCodes(words, self.n_bits)

    def _blocks(self, n_items: int) -> list[slice]:
        step = max(1, _BLOCK_VALUES // max(self.n_features, self.n_bits))
        return [slice(first, min(first + step, n_items)) for first in range(0, n_items, step)]

    @cached_property
    def _single(self) -> _Single:
        return _Single.of(self.weights, self.offset)

    def _single_block(self, vectors: NDArray[Any]) -> NDArray[np.uint64]:
        """Codes of a block by a float32 product; by a float64 one where that leaves many signs open."""
        single = self._single
        # Numbers beyond float32 become infinite, their signs stay open.
        with np.errstate(over="ignore", invalid="ignore"):
            block = np.asarray(vectors, dtype=np.float32, order="C")
            norms = np.sqrt(row_squares(block))
            product = block @ single.weights
        words, open_ = pack_signs(product, norms, single.threshold, single.slope, single.floor)
        if open_.size > _FEW_OPEN * product.size:
            return self._double_block(vectors)[1]
        if open_.size:
            items, bits = np.divmod(open_, self.n_bits)
            _set_bits(words, items, bits, self._by_definition(vectors, items, bits) >= 0)
        return words

    def _double_block(self, vectors: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
        """Projections of a block by a float64 product, those near zero by definition, and the codes."""
        # C order: a product must not depend on how the caller keeps equal numbers.
        block = np.asarray(vectors, dtype=np.float64, order="C")
        values = block @ self.weights.T
        values += self.offset
        # The product and the definition each err by at most (d + 2) eps / 2 (|x| |w| + |offset|): twice their sum.
        slope = 2 * (self.n_features + 4) * float(np.finfo(np.float64).eps)
        lengths, zero = np.sqrt(row_squares(self.weights)), np.zeros(self.n_bits)
        words, open_ = pack_signs(
            values,
            np.sqrt(row_squares(block)),
            zero,
            slope * lengths,
            slope * np.abs(self.offset) + 1e-300,
        )
        items, bits = np.divmod(open_, self.n_bits)
        exact = self._by_definition(block, items, bits)
        values[items, bits] = exact
        _set_bits(words, items, bits, exact >= 0)
        return values, words

    def _by_definition(
        self, vectors: NDArray[Any], items: NDArray[np.int64], bits: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Projections of some pairs of an item and a bit."""
        values = np.empty(items.size)
        step = max(1, _DIRECT_NUMBERS // self.n_features)
        for first in range(0, items.size, step):
            part = slice(first, first + step)
            products = vectors[items[part]].astype(np.float64, order="C")
            products *= self.weights[bits[part]]
            values[part] = products.sum(axis=1) + self.offset[bits[part]]
        return values


def _set_bits(
    words: NDArray[np.uint64], items: NDArray[np.int64], bits: NDArray[np.int64], values: NDArray[np.bool_]
) -> None:
    places, shifts = bits // 64, (bits % 64).astype(np.uint64)
    # Several open bits may share a word: `at` takes them one after the other.
    np.bitwise_and.at(words, (items, places), ~(np.uint64(1) << shifts))
    np.bitwise_or.at(words, (items, places), values.astype(np.uint64) << shifts)
