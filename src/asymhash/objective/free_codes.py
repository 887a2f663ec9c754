"""Codes that are free: each item's own k bits, minimising the objective against query codes that stand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asymhash.objective.loss import Loss, gain_tables
from asymhash.objective.pairs import pairs_of
from asymhash.similarity import Similarity

__all__ = ["fit_free_codes"]

# A bit is flipped only for a gain above rounding: an item whose gain is a tie must not flip to and fro for ever.
_TIE = 1e-9


def fit_free_codes(
    query_signs: NDArray[np.int8],
    similarity: Similarity,
    start: NDArray[np.int8],
    *,
    theta: float,
    beta: float,
    loss: Loss,
) -> NDArray[np.int8]:
    """Signs (n_items, k) from which no single flip of a bit lowers the objective; `start` is the first guess.

    Every flip lowers the loss of its own item and no other item's, so this ends, and each item ends on its own.
    """
    n_bits = query_signs.shape[1]
    signs = start.copy()
    pairs = pairs_of(similarity, n_bits)
    for bit in range(n_bits):
        pairs.add(query_signs[:, bit], signs[:, bit])
    tables = gain_tables(n_bits - 1, theta, beta, loss)
    tie = _TIE * similarity.n_queries * float(max(tables.similar.max(), tables.dissimilar.max()))
    unchanged = 0
    while unchanged < n_bits:
        for bit in range(n_bits):
            u, v = query_signs[:, bit], signs[:, bit]
            pairs.remove(bit)
            gain = pairs.gains(tables, exact=True).transposed_times(u)
            flips = gain * v < -tie
            unchanged = 0 if flips.any() else unchanged + 1
            signs[flips, bit] = -v[flips]
            pairs.add(u, signs[:, bit], at=bit)
            if unchanged == n_bits:
                break
    return signs
