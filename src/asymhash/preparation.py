"""From vectors to the features that rows of a linear map are learned on; learned once, then folded into the map."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asymhash.linear_map import LinearMap

__all__ = ["Preparation"]

_BLOCK_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Preparation:
    """Centre, optional principal components, division by the root mean square length, one constant feature.

    The scale makes step sizes of SGD mean the same for every data set; the constant feature is the bias.
    """

    mean: NDArray[np.float64]
    components: NDArray[np.float64] | None
    scale: float
    constant: float

    @classmethod
    def learn(cls, vectors: NDArray[Any], *, pca: int | None = None, constant: float = 0.0) -> Preparation:
        """Learn from training vectors; `pca` keeps at most so many principal components."""
        mean = _mean(vectors)
        components = None
        if pca is not None and pca < vectors.shape[1]:
            components = _principal_components(vectors, mean, pca)
        unscaled = cls(mean, components, 1.0, 0.0)
        total = sum(float(np.square(block).sum()) for block in unscaled._blocks(vectors))
        scale = float(np.sqrt(total / len(vectors)))
        return cls(mean, components, scale if scale > 0 else 1.0, constant)

    @property
    def n_features(self) -> int:
        """Width of the features."""
        return (len(self.mean) if self.components is None else len(self.components)) + (self.constant != 0)

    def features(self, vectors: NDArray[Any], dtype: type[np.floating[Any]] = np.float64) -> NDArray[Any]:
        """Features of vectors, shape (n, n_components [+ 1])."""
        width = self.n_features - (self.constant != 0)
        result = np.empty((len(vectors), self.n_features), dtype=dtype)
        start = 0
        for block in self._blocks(vectors):
            result[start : start + len(block), :width] = block
            start += len(block)
        if self.constant != 0:
            result[:, width] = self.constant
        return result

    def fold(self, rows: NDArray[np.float64]) -> LinearMap:
        """Linear map on vectors that does what `rows` (n_bits, n_features) do on features."""
        if self.constant != 0:
            rows, bias = rows[:, :-1], rows[:, -1] * self.constant
        else:
            bias = np.zeros(len(rows))
        weights = rows if self.components is None else rows @ self.components
        weights = weights / self.scale
        return LinearMap(weights, bias - weights @ self.mean)

    def _blocks(self, vectors: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
        for block in _float_blocks(vectors):
            centred = block - self.mean
            yield (centred if self.components is None else centred @ self.components.T) / self.scale


def _float_blocks(vectors: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
    """Blocks of rows as float64, in C order: sums must not depend on how the caller keeps equal numbers."""
    for first in range(0, len(vectors), _BLOCK_ROWS):
        yield np.asarray(vectors[first : first + _BLOCK_ROWS], dtype=np.float64, order="C")


def _mean(vectors: NDArray[Any]) -> NDArray[np.float64]:
    total = np.zeros(vectors.shape[1])
    for block in _float_blocks(vectors):
        total += block.sum(axis=0)
    mean: NDArray[np.float64] = total / len(vectors)
    return mean


def _principal_components(
    vectors: NDArray[Any], mean: NDArray[np.float64], n_components: int
) -> NDArray[np.float64]:
    """Directions of the largest variance, (n_components, d), each with its largest entry positive."""
    scatter = np.zeros((vectors.shape[1], vectors.shape[1]))
    for block in _float_blocks(vectors):
        centred = block - mean
        scatter += centred.T @ centred
    components = np.linalg.eigh(scatter)[1].T[::-1][:n_components]
    largest = np.take_along_axis(components, np.abs(components).argmax(axis=1)[:, None], axis=1)
    return np.ascontiguousarray(components * np.where(largest < 0, -1.0, 1.0))
