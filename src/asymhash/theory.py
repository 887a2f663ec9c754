"""Theorem 1 of the paper as code: a similarity for which asymmetric codes need exponentially fewer bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asymhash.checks import check_integer
from asymhash.codes import BinaryCodes
from asymhash.similarity import Similarity

__all__ = ["ExponentialGap", "exponential_gap"]

_MAX_R = 14  # 16,384 points: the similarity alone then takes half a gigabyte


@dataclass(frozen=True, slots=True, eq=False)
class ExponentialGap:
    """One instance of Theorem 1.

    Attributes
    ----------
    r : int
        Half the asymmetric code length.
    similarity : Similarity of shape (n, n), n = 2**r
        A point is similar to itself and to the points of the other half, to no other of its own half.
    query_codes, database_codes : BinaryCodes of n items, 2 r bits
        Their inner product is above the threshold exactly where the similarity is +1.
    threshold : int
        Theta of the paper, -1.
    symmetric_lower_bound : int
        n / 2: no symmetric code of fewer bits expresses the similarity, whatever its threshold.
    """

    r: int
    similarity: Similarity
    query_codes: BinaryCodes
    database_codes: BinaryCodes
    threshold: int
    symmetric_lower_bound: int

    @property
    def n_points(self) -> int:
        """The number of points, n = 2**r."""
        return 1 << self.r

    @property
    def asymmetric_bits(self) -> int:
        """Length of the asymmetric codes, 2 r."""
        return self.query_codes.n_bits

    @property
    def points(self) -> NDArray[np.float64]:
        """Points whose distance is at most 1 exactly where the similarity is +1, made anew, shape (n, n).

        The proof asks for the inner products G = (1/2 + 1/(2n)) I - q q' / (2n), with q = +1 on the first
        half and -1 on the second, and has them by positive definiteness. Here they are in closed form: the
        square root of G is a I - b q q'. Squared distances are 1 + 1/n within a half and 1 - 1/n (where the
        paper prints a second 1 + 1/n) across.
        """
        n = self.n_points
        a = np.sqrt((1 + 1 / n) / 2)
        b = (a - np.sqrt(1 / (2 * n))) / n
        half = _halves(n).astype(np.float64)
        points: NDArray[np.float64] = np.outer(-b * half, half)
        np.fill_diagonal(points, a - b)
        return points


def exponential_gap(r: int) -> ExponentialGap:
    """Build the points, similarity and codes of Theorem 1; use it to see or check the power of asymmetry.

    Parameters
    ----------
    r : int
        From 1 to 14; there are 2**r points.

    Returns
    -------
    ExponentialGap

    References
    ----------
    Neyshabur, Yadollahpour, Makarychev, Salakhutdinov, Srebro. The Power of Asymmetry in Binary Hashing. NIPS
    2013, Theorem 1.

    Examples
    --------
    >>> from asymhash.theory import exponential_gap
    >>> gap = exponential_gap(10)
    >>> gap.n_points, gap.asymmetric_bits, gap.symmetric_lower_bound
    (1024, 20, 512)
    """
    r = check_integer(r, where="exponential_gap", name="r", low=1, high=_MAX_R)
    n = 1 << r
    # B of the proof: the vertices of the cube, one for each point.
    cube = (np.arange(n)[:, None] >> np.arange(r)) & 1 == 1
    # C of the proof: r times the half. The database side has -C, so the inner product of the cube's vertices
    # loses r within a half and gains r across.
    half = np.repeat(_halves(n)[:, None] > 0, r, axis=1)
    return ExponentialGap(
        r=r,
        similarity=_similarity(n),
        query_codes=BinaryCodes.from_bools(np.column_stack([cube, half])),
        database_codes=BinaryCodes.from_bools(np.column_stack([cube, ~half])),
        threshold=-1,
        symmetric_lower_bound=n // 2,
    )


def _halves(n: int) -> NDArray[np.int8]:
    return np.repeat(np.array([1, -1], dtype=np.int8), n // 2)


def _similarity(n: int) -> Similarity:
    half = n // 2
    first, second = np.arange(half, dtype=np.int32), np.arange(half, n, dtype=np.int32)
    # Increasing within a row: itself and the second half, or the first half and itself.
    upper = np.column_stack([first, np.broadcast_to(second, (half, half))])
    lower = np.column_stack([np.broadcast_to(first, (half, half)), second])
    indptr = np.arange(n + 1, dtype=np.int64) * (half + 1)
    indices = np.concatenate([upper.ravel(), lower.ravel()])
    return Similarity(indptr, indices, (n, n), origin={"kind": "exponential_gap", "r": n.bit_length() - 1})
