"""Vectors to codes by a linear threshold function: what a client needs, and all that it needs.

The projection of a vector is *defined* as the float64 sum of its products with the weights, in NumPy's own
order, plus the offset. Other ways are much faster, but their last bits depend on the dtype, the order of the sums
or the BLAS; so they only decide the signs that are certain in spite of their rounding, and the rest are computed by
definition. That lets `encode` multiply in float32, whatever the dtype of the vectors, and give the codes of
float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asymhash.codes import BinaryCodes
from asymhash.kernels import ENCODED_DTYPES, SignMap, encode_signs, row_squares
from asymhash.workers import in_threads

__all__ = ["LinearMap"]

_BLOCK_VALUES = 1 << 18  # numbers in a block to project: 2 MiB
# What `encode` hands to the kernel at once: so much that starting threads takes less than a hundredth of it, and so
# little that Ctrl-C is heard at once and that at most 32 MiB of open signs, 16 MiB of converted vectors are held.
_STREAMED_VALUES = 1 << 24
_OPEN_SIGNS = 1 << 22
_CONVERTED_VALUES = 1 << 21
_DIRECT_NUMBERS = 1 << 17  # products by definition held at once: 1 MiB


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
            result[block] = self._project_block(vectors[block])

        for _ in in_threads(project_block, self._blocks(len(vectors))):
            pass
        return result

    def encode(self, vectors: NDArray[Any]) -> BinaryCodes:
        """Return the codes of vectors, the signs of `project`, in blocks of bounded memory."""
        words = np.empty((len(vectors), -(-self.n_bits // 64)), dtype=np.uint64)
        as_they_are = vectors.dtype in ENCODED_DTYPES and vectors.flags.c_contiguous and vectors.flags.aligned
        n_values = _STREAMED_VALUES if as_they_are else _CONVERTED_VALUES
        step = max(1, min(n_values // self.n_features, _OPEN_SIGNS // self.n_bits))
        for first in range(0, len(vectors), step):
            part = slice(first, first + step)
            self._encode_part(vectors[part], words[part])
        words.flags.writeable = False
        return BinaryCodes(words, self.n_bits)

    def _encode_part(self, vectors: NDArray[Any], words: NDArray[np.uint64]) -> None:
        rows = vectors if vectors.dtype in ENCODED_DTYPES else vectors.astype(np.float64)
        open_ = encode_signs(rows, self._sign_map, words)
        step = max(1, _DIRECT_NUMBERS // self.n_features)
        for first in range(0, open_.size, step):
            items, bits = np.divmod(open_[first : first + step], self.n_bits)
            _set_bits(words, items, bits, self._by_definition(vectors, items, bits) >= 0)

    def _blocks(self, n_items: int) -> list[slice]:
        step = max(1, _BLOCK_VALUES // max(self.n_features, self.n_bits))
        return [slice(first, min(first + step, n_items)) for first in range(0, n_items, step)]

    @cached_property
    def _sign_map(self) -> SignMap:
        return SignMap.of(self.weights, self.offset)

    def _project_block(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Projections of a block by a product, those near zero by definition."""
        # C order: a product must not depend on how the caller keeps equal numbers.
        block = np.asarray(vectors, dtype=np.float64, order="C")
        values = block @ self.weights.T
        values += self.offset
        # The product and the definition each err by at most (d + 2) eps / 2 (|x| |w| + |offset|): twice their sum.
        slope = 2 * (self.n_features + 4) * float(np.finfo(np.float64).eps)
        lengths, norms = np.sqrt(row_squares(self.weights)), np.sqrt(row_squares(block))
        bounds = norms[:, None] * (slope * lengths)
        bounds += slope * np.abs(self.offset) + 1e-300
        # Not the other way round: what is no number is open too.
        items, bits = np.nonzero(~(np.abs(values) > bounds))
        values[items, bits] = self._by_definition(block, items, bits)
        return values

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
