"""Vectors to codes by a linear threshold function of Gaussian kernels to a few anchors: what KSH learns.

As with a `LinearMap` the projection of a vector is *defined*, here by its own distances to the anchors, summed in
NumPy's order. Matrix products are faster and decide every sign that their rounding cannot turn; the few others are
computed by definition, so that a code does not depend on the vectors that happen to be encoded beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asymhash.codes import BinaryCodes
from asymhash.workers import in_threads

__all__ = ["KernelMap", "gaussian_kernel"]

_BLOCK_VALUES = 1 << 20  # numbers in a block of vectors or of kernels: 8 MiB
_DIRECT_VALUES = 1 << 20  # differences held at once where signs are computed by definition


@dataclass(frozen=True, eq=False)
class KernelMap:
    """Bit t of x is set where sum_j weights_tj exp(-|x - anchor_j|^2 / (2 width)) + offset_t >= 0.

    Parameters
    ----------
    anchors : float64 array of shape (n_anchors, n_features)
    width : float
        A squared distance, above 0.
    weights : float64 array of shape (n_bits, n_anchors)
    offset : float64 array of shape (n_bits,)

    Examples
    --------
    >>> near_origin = KernelMap(np.zeros((1, 2)), 1.0, np.array([[1.0]]), np.array([-0.5]))
    >>> near_origin.encode(np.array([[0.0, 1.0], [3.0, 0.0]])).to_signs()
    array([[ 1],
           [-1]], dtype=int8)
    """

    anchors: NDArray[np.float64]
    width: float
    weights: NDArray[np.float64]
    offset: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name in ("anchors", "weights", "offset"):
            array = np.array(getattr(self, name), dtype=np.float64, order="C")
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def n_features(self) -> int:
        """Length of the vectors that the map takes."""
        return int(self.anchors.shape[1])

    @property
    def n_bits(self) -> int:
        """Length of the codes that the map gives."""
        return int(self.weights.shape[0])

    def project(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Return the real numbers whose signs are the bits, shape (n_items, n_bits)."""
        result = np.empty((len(vectors), self.n_bits))

        def project_block(block: slice) -> None:
            result[block] = self._block(vectors[block])

        for _ in in_threads(project_block, self._blocks(len(vectors))):
            pass
        return result

    def encode(self, vectors: NDArray[Any]) -> BinaryCodes:
        """Return the codes of vectors, the signs of `project`, in blocks of bounded memory."""
        words = np.empty((len(vectors), -(-self.n_bits // 64)), dtype=np.uint64)

        def encode_block(block: slice) -> None:
            words[block] = BinaryCodes.from_bools(self._block(vectors[block]) >= 0).words

        for _ in in_threads(encode_block, self._blocks(len(vectors))):
            pass
        words.flags.writeable = False
        return BinaryCodes(words, self.n_bits)

    def _blocks(self, n_items: int) -> list[slice]:
        step = max(1, _BLOCK_VALUES // max(self.n_features, len(self.anchors), self.n_bits))
        return [slice(first, first + step) for first in range(0, n_items, step)]

    @cached_property
    def _centre(self) -> NDArray[np.float64]:
        centre: NDArray[np.float64] = self.anchors.mean(axis=0)
        return centre

    def _block(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        block = np.asarray(vectors, dtype=np.float64, order="C") - self._centre
        anchors = self.anchors - self._centre
        values: NDArray[np.float64] = gaussian_kernel(block, anchors, self.width) @ self.weights.T
        values += self.offset
        # A squared distance errs by a few d eps (|x| + |a|)^2, a kernel by that over twice the width and an eps of
        # its own, as it is at most 1; the sum over anchors adds a few eps for each. Ten times what follows.
        eps = float(np.finfo(np.float64).eps)
        reach = np.linalg.norm(block, axis=1) + float(np.linalg.norm(anchors, axis=1).max())
        in_kernel = eps * (10 * (self.n_features + 4) * np.square(reach) / self.width + 10 * len(anchors))
        lengths = np.abs(self.weights).sum(axis=1) + np.abs(self.offset)
        # Without weights there is nothing to round: the value is the offset.
        bounds = np.where(self.weights.any(axis=1), lengths, -1.0)
        items, bits = np.nonzero(np.abs(values) <= in_kernel[:, None] * bounds)
        values[items, bits] = self._by_definition(vectors, items, bits)
        return values

    def _by_definition(
        self, vectors: NDArray[Any], items: NDArray[np.int64], bits: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Projections of some pairs of an item and a bit, in the order of items; one row of kernels for each item."""
        values = np.empty(items.size)
        distinct = np.unique(items)
        n_anchors = len(self.anchors)
        step = max(1, _DIRECT_VALUES // (n_anchors * max(self.n_features, self.n_bits)))
        for first in range(0, distinct.size, step):
            chunk = distinct[first : first + step]
            difference = vectors[chunk, None, :].astype(np.float64, order="C") - self.anchors
            kernel = np.exp(np.square(difference, out=difference).sum(axis=2) / (-2.0 * self.width))
            part = slice(*np.searchsorted(items, [chunk[0], chunk[-1] + 1]))
            terms = kernel[np.searchsorted(chunk, items[part])]
            terms *= self.weights[bits[part]]
            values[part] = terms.sum(axis=1) + self.offset[bits[part]]
        return values


def gaussian_kernel(
    vectors: NDArray[np.float64], anchors: NDArray[np.float64], width: float
) -> NDArray[np.float64]:
    """exp(-|x - a|^2 / (2 width)) of every vector and anchor, shape (n_items, n_anchors).

    Examples
    --------
    >>> gaussian_kernel(np.zeros((1, 2)), np.array([[0.0, 0.0], [2.0, 0.0]]), 2.0).round(3)
    array([[1.   , 0.368]])
    """
    squares = vectors @ anchors.T
    squares *= -2.0
    squares += np.square(vectors).sum(axis=1)[:, None]
    squares += np.square(anchors).sum(axis=1)
    np.maximum(squares, 0.0, out=squares)
    squares /= -2.0 * width
    kernel: NDArray[np.float64] = np.exp(squares, out=squares)
    return kernel
