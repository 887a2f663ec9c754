"""What one bit may be on one side: a linear threshold of the vectors, or anything.

A `HalfBit` is one column of U or of V, with the row of the linear map that makes it where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asymhash.learn.classify import RowClassifier, signs_of

__all__ = ["FreeSide", "HalfBit", "LinearSide", "Side"]

# Directions of the features with less than this share of the largest singular value are not their column space.
_RANK_TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class HalfBit:
    """One bit of all items of one side; `row` is None where the bit is free."""

    signs: NDArray[np.int8]
    row: NDArray[np.float64] | None = None


class Side(Protocol):
    """What the bits of one side may be."""

    n_items: int

    def random(self, rng: np.random.Generator) -> HalfBit:
        """Draw a bit."""

    def project(self, direction: NDArray[np.float64]) -> NDArray[np.float64]:
        """Nearest vector to `direction` (n_items,) that this side can make before the threshold."""

    def threshold(self, direction: NDArray[np.float64]) -> HalfBit:
        """Bit of a projected direction."""

    def improve(self, half: HalfBit, gain: NDArray[np.float64], rng: np.random.Generator) -> HalfBit:
        """Climb sum_i gain_i signs_i from `half`; never descend."""


class FreeSide:
    """Every item's bit is its own: the optimum is closed form, sign(gain)."""

    def __init__(self, n_items: int) -> None:
        self.n_items = n_items

    def random(self, rng: np.random.Generator) -> HalfBit:
        """Toss a coin for every item."""
        return HalfBit((2 * rng.integers(0, 2, self.n_items) - 1).astype(np.int8))

    def project(self, direction: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the direction itself: nothing is out of reach."""
        return direction

    def threshold(self, direction: NDArray[np.float64]) -> HalfBit:
        """Threshold at zero."""
        return HalfBit(signs_of(direction))

    def improve(self, half: HalfBit, gain: NDArray[np.float64], rng: np.random.Generator) -> HalfBit:
        """Take the optimum; an item that gains nothing keeps its bit."""
        signs = signs_of(gain)
        undecided = gain == 0
        if undecided.any():
            signs[undecided] = half.signs[undecided]
        return HalfBit(signs)


class LinearSide:
    """Bits are sign(<w, x>) of features (n_items, d); rows w come from weighted logistic regression by SGD."""

    def __init__(self, features: NDArray[np.float64], n_epochs: int) -> None:
        self.features = features
        self.n_items = len(features)
        self.rows = RowClassifier(features, n_epochs)
        # The eigenvectors of X'X rather than the SVD of X: d x d however many items there are.
        squares, directions = np.linalg.eigh(features.T @ features)
        keep = squares > _RANK_TOLERANCE * max(float(squares[-1]), np.finfo(float).tiny)
        self._inverse = (directions[:, keep] / squares[keep]) @ directions[:, keep].T

    def random(self, rng: np.random.Generator) -> HalfBit:
        """Draw a hyperplane."""
        return self._half(rng.standard_normal((self.features.shape[1],)))

    def project(self, direction: NDArray[np.float64]) -> NDArray[np.float64]:
        """Project on the column space of the features."""
        projected: NDArray[np.float64] = self.features @ self.regressed(direction)
        return projected

    def threshold(self, direction: NDArray[np.float64]) -> HalfBit:
        """Threshold the least-squares fit to the direction."""
        return self._half(self.regressed(direction))

    def improve(self, half: HalfBit, gain: NDArray[np.float64], rng: np.random.Generator) -> HalfBit:
        """Classify with targets sign(gain) and weights |gain|; the old row stays if it is not beaten on the truth."""
        assert half.row is not None
        new = self._half(self.rows.learn(gain, half.row, rng))
        return new if gain @ new.signs > gain @ half.signs else half

    def with_row(self, row: NDArray[np.floating[Any]]) -> HalfBit:
        """Bit of a given row."""
        return self._half(row.astype(np.float64))

    def regressed(self, direction: NDArray[np.float64]) -> NDArray[np.float64]:
        """Row whose projection is nearest to the direction, by least squares."""
        row: NDArray[np.float64] = self._inverse @ (self.features.T @ direction)
        return row

    def _half(self, row: NDArray[np.float64]) -> HalfBit:
        return HalfBit(signs_of(self.features @ row), row)
