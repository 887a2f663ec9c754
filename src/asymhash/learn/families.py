"""What one bit may be on both sides together: two bits of their own, or one that both sides share.

A `Family` starts a bit and improves one while all other bits stand, that is, it climbs u' M v.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from asymhash.learn.classify import RowClassifier, signs_of
from asymhash.learn.sides import HalfBit, LinearSide, Side
from asymhash.objective.pairs import Gains

__all__ = ["Bit", "Climb", "Family", "SharedFree", "SharedLinear", "TwoSides"]

# The start needs a direction, not digits: with 4, 6 and 10 steps AP at 8, 16 and 32 bits is the same within its
# standard error (12 seeds of Uniform, Nursery, digits), and so it is when a step turns by less than a degree.
_POWER_STEPS = 5
_TURN = 1e-4
_LINE_STEPS = (1.0, 0.5, 0.25, 0.1, 0.05)


@dataclass(frozen=True, eq=False)
class Bit:
    """One bit of every training query and every database item."""

    query: HalfBit
    database: HalfBit

    @property
    def u(self) -> NDArray[np.int8]:
        """Column of U."""
        return self.query.signs

    @property
    def v(self) -> NDArray[np.int8]:
        """Column of V."""
        return self.database.signs


class Climb(NamedTuple):
    """Where a climb ended: the bit, and its u' M v."""

    bit: Bit
    score: float


class Family(Protocol):
    """All bits that a method allows."""

    def random(self, rng: np.random.Generator) -> Bit:
        """Draw a bit."""

    def rank_one(self, gains: Gains, rng: np.random.Generator) -> Bit:
        """Threshold the best rank-one approximation of M that the family can make."""

    def improve(self, bit: Bit, gains: Gains, rng: np.random.Generator) -> Climb:
        """Climb u' M v; never descend."""


class TwoSides:
    """Two hash functions: Lin:V, Lin:Lin, and free codes on both sides, by what the sides are.

    Queries come first in every alternation, so that a free database side ends at its optimum for the new queries.
    """

    def __init__(self, query: Side, database: Side, n_alternations: int) -> None:
        self.query = query
        self.database = database
        self.n_alternations = n_alternations

    def random(self, rng: np.random.Generator) -> Bit:
        """Draw both sides."""
        return Bit(self.query.random(rng), self.database.random(rng))

    def rank_one(self, gains: Gains, rng: np.random.Generator) -> Bit:
        """Power iteration on M, projected on each side that must be linear."""
        b = _unit(self.database.project(rng.standard_normal(self.database.n_items)))
        a = np.zeros(self.query.n_items)
        for _ in range(_POWER_STEPS):
            before, a = a, _unit(self.query.project(gains.times(b)))
            b = _unit(self.database.project(gains.transposed_times(a)))
            if a @ before > 1.0 - _TURN:
                break
        return Bit(self.query.threshold(a), self.database.threshold(b))

    def improve(self, bit: Bit, gains: Gains, rng: np.random.Generator) -> Climb:
        """Alternate between the sides."""
        score = -np.inf
        for _ in range(self.n_alternations):
            query = self.query.improve(bit.query, gains.times(bit.v), rng)
            gain = gains.transposed_times(query.signs)
            database = self.database.improve(bit.database, gain, rng)
            bit, score = Bit(query, database), float(gain @ database.signs)
        return Climb(bit, score)


class SharedLinear:
    """One linear map for both sides: the symmetric twin of Lin:Lin, with the same objective.

    u' M v with u = sign(Xq w) and v = sign(Xd w) is linearised at the present bits: gains M v for the queries and
    M' u for the items, one classification over both. A step may overshoot, so shorter ones are tried too.
    """

    def __init__(self, query: LinearSide, database: LinearSide, n_alternations: int) -> None:
        self.query = query
        self.database = database
        self.n_alternations = n_alternations
        same = query.features is database.features
        both = query.features if same else np.concatenate([query.features, database.features])
        self._rows = query.rows if same else RowClassifier(both, query.rows.n_epochs)
        self._same = same

    def random(self, rng: np.random.Generator) -> Bit:
        """Draw a hyperplane for both sides."""
        return self._bit(rng.standard_normal((self.query.features.shape[1],)))

    def rank_one(self, gains: Gains, rng: np.random.Generator) -> Bit:
        """Leading eigenvector of the symmetric part of M between the two column spaces."""
        row = rng.standard_normal((self.query.features.shape[1],))
        a = self.query.features @ row
        for _ in range(2 * _POWER_STEPS):
            length = float(np.linalg.norm(a))
            b = self.database.features @ row
            pulled = self._regressed(gains.times(b), gains.transposed_times(a)) / length
            # Shifted by its own size, because the eigenvalue of largest size may be negative, and its vector
            # would be the worst start, not the best.
            shift = float(np.linalg.norm(self.query.features @ pulled))
            following = pulled + shift * row / length
            a = self.query.features @ following
            # Nothing to gain in any direction, or only to lose in the one there is: what is left is rounding.
            if np.linalg.norm(a) <= 1e-9 * shift:
                break
            row = following
        return self._bit(row)

    def improve(self, bit: Bit, gains: Gains, rng: np.random.Generator) -> Climb:
        """Take the best of several steps towards the row that the linearised problem asks for."""
        score = -np.inf
        for _ in range(self.n_alternations):
            old = bit.query.row
            assert old is not None
            gain_u, gain_v = gains.times(bit.v), gains.transposed_times(bit.u)
            gain = gain_u + gain_v if self._same else np.concatenate([gain_u, gain_v])
            new = self._rows.learn(gain, old, rng)
            best, score = bit, float(gain_u @ bit.u)
            for step in _LINE_STEPS:
                candidate = self._bit(_unit(old) + step * (_unit(new) - _unit(old)))
                reached = float(candidate.u @ gains.times(candidate.v))
                if reached > score:
                    best, score = candidate, reached
            if best is bit:
                break
            bit = best
        return Climb(bit, score)

    def _regressed(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        query_row = self.query.regressed(a)
        return query_row + self.database.regressed(b)

    def _bit(self, row: NDArray[np.float64]) -> Bit:
        query = HalfBit(signs_of(self.query.features @ row), row)
        return Bit(query, query if self._same else HalfBit(signs_of(self.database.features @ row), row))


class SharedFree:
    """One free code for queries and database, which are the same items: symmetric codes of a matrix.

    The optimum of u' M u is not closed form. Bits are flipped one at a time, each where it gains most, with the
    gains kept up to date by one column of M a flip.
    """

    def __init__(self, n_items: int) -> None:
        self.n_items = n_items

    def random(self, rng: np.random.Generator) -> Bit:
        """Toss a coin for every item."""
        half = HalfBit((2 * rng.integers(0, 2, self.n_items) - 1).astype(np.int8))
        return Bit(half, half)

    def rank_one(self, gains: Gains, rng: np.random.Generator) -> Bit:
        """Leading eigenvector of the symmetric part of M."""
        a = _unit(rng.standard_normal(self.n_items))
        for _ in range(_POWER_STEPS):
            a = _unit(gains.times(a) + gains.transposed_times(a))
        half = HalfBit(signs_of(a))
        return Bit(half, half)

    def improve(self, bit: Bit, gains: Gains, rng: np.random.Generator) -> Climb:
        """Flip while a flip gains."""
        u = bit.u.astype(np.float64)
        diagonal = gains.diagonal()
        # Flipping u_i changes u'Mu by -2 u_i (pull_i - 2 M_ii u_i), pull = (M + M') u.
        pull = gains.times(u) + gains.transposed_times(u)
        tie = 1e-9 * float(np.abs(pull).max(initial=0.0))
        for _ in range(
            50 * self.n_items
        ):  # a bound against rounding; every flip gains, so it ends long before
            gain = -u * (pull - 2.0 * diagonal * u)
            item = int(gain.argmax())
            if gain[item] <= tie:
                break
            pull -= 2.0 * u[item] * (gains.column(item) + gains.row(item))
            u[item] = -u[item]
        half = HalfBit(u.astype(np.int8))
        return Climb(Bit(half, half), float(pull @ u) / 2.0)


def _unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else vector
