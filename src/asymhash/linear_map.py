"""Vectors to codes by a linear threshold function: what a client needs, and all that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asymhash.codes import BinaryCodes

__all__ = ["LinearMap"]

_BLOCK_VALUES = 1 << 22  # numbers converted to float64 at a time: 32 MiB


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
        step = self._block_rows()
        for first in range(0, len(vectors), step):
            # C order: a product must not depend on how the caller keeps equal numbers.
            block = np.asarray(vectors[first : first + step], dtype=np.float64, order="C")
            np.matmul(block, self.weights.T, out=result[first : first + step])
        result += self.offset
        return result

    def encode(self, vectors: NDArray[Any]) -> BinaryCodes:
        """Return the codes of vectors, in blocks of bounded memory."""
        step = self._block_rows()
        parts = [
            BinaryCodes.from_bools(self.project(vectors[first : first + step]) >= 0)
            for first in range(0, max(len(vectors), 1), step)
        ]
        return BinaryCodes.concatenate(parts)

    def _block_rows(self) -> int:
        # One size for both ways: the last bit of a product may depend on the block, and with it a sign near zero.
        return max(1, _BLOCK_VALUES // max(self.n_features, self.n_bits))
