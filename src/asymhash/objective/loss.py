"""The loss of one pair, and the tables of what one more bit can gain on it.

Everything about a pair that the objective can see is its similarity and the Hamming distance of its two codes.
So a loss over pairs is a table over distances, and a table is all that the rest of the package ever handles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["LOSSES", "GainTables", "Loss", "centred", "gain_tables", "pair_loss", "scaled"]

Loss = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def _logistic(margin: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.logaddexp(0.0, -margin)


def _sqrt_logistic(margin: NDArray[np.float64]) -> NDArray[np.float64]:
    # The paper's choice: not flat on the wrong side, yet forgiving to pairs that are far on it.
    return np.sqrt(np.logaddexp(0.0, -margin))


def _hinge(margin: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(0.0, 1.0 - margin)


LOSSES: dict[str, Loss] = {"sqrt_logistic": _sqrt_logistic, "logistic": _logistic, "hinge": _hinge}


class GainTables(NamedTuple):
    """M as two tables over the Hamming distance: one for similar pairs, one for dissimilar pairs."""

    similar: NDArray[np.float64]
    dissimilar: NDArray[np.float64]


def pair_loss(n_bits: int, theta: float, beta: float, loss: Loss) -> GainTables:
    """Weighted loss of one pair at every Hamming distance 0..n_bits."""
    y = n_bits - 2 * np.arange(n_bits + 1, dtype=np.float64) - theta
    return GainTables(beta * loss(y), (1.0 - beta) * loss(-y))


def gain_tables(n_other_bits: int, theta: float, beta: float, loss: Loss) -> GainTables:
    """M_ij at every Hamming distance 0..n_other_bits of the *other* bits.

    M_ij = beta_ij / 2 * (loss(S_ij (Y_ij - 1)) - loss(S_ij (Y_ij + 1))), with Y without the bit in question.
    """
    y = n_other_bits - 2 * np.arange(n_other_bits + 1, dtype=np.float64) - theta
    similar = 0.5 * beta * (loss(y - 1.0) - loss(y + 1.0))
    dissimilar = 0.5 * (1.0 - beta) * (loss(1.0 - y) - loss(-1.0 - y))
    return GainTables(similar, dissimilar)


def scaled(loss: Loss, scale: float) -> Loss:
    """Loss whose margins count in units of `scale`: with a larger one, more pairs are near enough to matter."""
    return loss if scale == 1.0 else lambda margin: loss(margin / scale)


def centred(tables: GainTables, similar: NDArray[np.int64], dissimilar: NDArray[np.int64]) -> GainTables:
    """Gains less their mean over all pairs, whose numbers at each distance are given.

    A bit that is the same for all items moves every Y by one, and so does theta, which follows the bit. Uncentred, such
    a bit is the best first bit where few pairs are similar: it calls all pairs dissimilar, and tells nothing.
    """
    n_pairs = int(similar.sum() + dissimilar.sum())
    mean = float(tables.similar @ similar + tables.dissimilar @ dissimilar) / n_pairs
    return GainTables(tables.similar - mean, tables.dissimilar - mean)
