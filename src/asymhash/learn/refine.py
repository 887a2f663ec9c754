"""All bits refined together, by straight-through gradients: what the descent over single bits cannot do.

The descent (`descent.py`) learns a bit while all others stand. Here all rows w of the query map move at once. For the
codes as they are, every pair pulls on every bit with the slope G of its loss; u = sign(<w, x>) is treated as
tanh(a <w, x>) on the way back, and Adam follows. Between epochs free database codes take their optimum, one bit after
the other, and theta follows. Database rows, where that side is linear too, are moved in the same way.

The letters: F the features of the queries (m, d), W the rows (k, d), U and V the codes; pools are training queries with
their similarity, real ones and synthetic ones (`synthetic.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from asymhash import kernels
from asymhash.codes import BinaryCodes
from asymhash.kernels import reference, training
from asymhash.learn.classify import signs_of
from asymhash.objective.loss import Loss, gain_tables, pair_loss, scaled
from asymhash.objective.pairs import Pairs, pairs_of
from asymhash.objective.threshold import best_threshold
from asymhash.similarity import Similarity
from asymhash.similarity.similarity import stacked

__all__ = [
    "FREE",
    "OWN",
    "SHARED",
    "Draw",
    "Pool",
    "Refinement",
    "Rows",
    "Signs",
    "refine",
    "refine_a_little",
]

Floats = NDArray[np.float32]
Positives = tuple[NDArray[np.int64], NDArray[np.int32]]
Signs = NDArray[np.int8]

FREE, OWN, SHARED = "free", "own", "shared"
"""What the database side is: any codes, a linear map of its own, the map of the queries."""

# Adam. Steps from .01 to .05, batches from 100 to 1000 and slopes from 1 to 3 differ by less than .005 of AP (4 sets,
# 8 to 32 bits), but for slope 1, which loses up to .01.
_STEP, _MOMENTUM, _SQUARES = 0.03, 0.9, 0.99
_BATCH = 1000
_SLOPE = 1.5
# 20 epochs lose .002 on average, 60 gain .002. Many queries make many steps in few epochs.
_N_EPOCHS, _FEWEST_EPOCHS, _N_STEPS = 30, 10, 250
# Synthetic queries of a pool, and how many epochs they serve before others take their place.
_N_SYNTHETIC, _N_SERVED = 2500, 10
# Items that a gradient sees in one epoch; of a larger database as many, drawn anew for each.
_MOST_ITEMS = 32768
# Sweeps over V at the end; a third changes hardly a bit.
_LAST_SWEEPS = 3
# Codes of more bits than this are swept every other epoch: it costs half of the time there, and one for each gains
# nothing at 32 bits, .004 of AP at 16.
_OFTEN_SWEPT_BITS = 16


class Pool(NamedTuple):
    """Queries to learn from: features (m, d), similarity to the database (m, n)."""

    features: Floats
    similarity: Similarity


class Draw(Protocol):
    """Synthetic queries: draws pools of a number."""

    def __call__(self, n: int, rng: np.random.Generator) -> Pool:
        """Draw."""

    def among(self, items: NDArray[np.int64]) -> Draw:
        """Draw the same with neighbours among some items only."""


class Rows(NamedTuple):
    """The maps: rows of the queries (k, d), and of the database where it has its own."""

    query: Floats
    database: Floats | None = None


@dataclass(frozen=True, eq=False)
class Refinement:
    """A problem of all bits together.

    `draw` gives synthetic queries of a number, None where their similarity is not known; `database` are the features of
    the items, which a free side needs only for its first codes; `scale` is the unit of the loss.
    """

    side: str
    real: Pool
    database: Floats
    draw: Draw | None
    n_bits: int
    beta: float
    loss: Loss
    scale: float

    def part(self, queries: NDArray[np.int64], items: NDArray[np.int64]) -> Refinement:
        """Give the problem of some queries and some items."""
        similarity = self.real.similarity
        whole = len(items) == similarity.n_items
        similarity = similarity.rows(queries)
        real = Pool(self.real.features[queries], similarity if whole else similarity.columns(items))
        if whole:
            return replace(self, real=real)
        draw = None if self.draw is None else self.draw.among(items)
        return replace(self, real=real, database=self.database[items], draw=draw)

    def with_scale(self, scale: float) -> Refinement:
        """Give the same problem in another unit of the loss."""
        return replace(self, scale=scale)

    @property
    def scaled_loss(self) -> Loss:
        """The loss in its unit."""
        return scaled(self.loss, self.scale)

    def pool(self, rng: np.random.Generator, n_synthetic: int = _N_SYNTHETIC) -> Pool:
        """All real queries, and fresh synthetic ones."""
        if self.draw is None:
            return self.real
        fresh = self.draw(n_synthetic, rng)
        features = np.concatenate([self.real.features, fresh.features])
        return Pool(features, stacked([self.real.similarity, fresh.similarity]))

    def first_codes(self, rows: Rows) -> Signs:
        """Codes (k, n) of the database before any of them is free: those of its rows."""
        return _signs(self.database, rows.query if rows.database is None else rows.database)


def refine(problem: Refinement, start: Rows, rng: np.random.Generator) -> tuple[Rows, Signs]:
    """Refine rows from a start to the end; returns them and the codes V (k, n) of the database."""
    rows, v = _unit_rows(start), problem.first_codes(start)
    pool = problem.pool(rng)
    n_epochs = int(np.clip(_N_STEPS * _BATCH // len(pool.features), _FEWEST_EPOCHS, _N_EPOCHS))
    n_pools = 1 if problem.draw is None else -(-n_epochs // _N_SERVED)
    steps = _Adam(rows, n_epochs * _n_batches(pool))
    for number, epochs in enumerate(np.array_split(np.arange(n_epochs), n_pools)):
        if number:
            pool = problem.pool(rng)
        rows, v = _climb(problem, pool, rows, v, steps, len(epochs), rng)
    if problem.side == FREE:
        # Codes are kept for ever, so they may cost more synthetic queries than rows did.
        if problem.draw is not None:
            pool = problem.pool(rng, 2 * _N_SYNTHETIC)
        v = _Codes(problem, pool, v).settled(rows, v)
    return rows, v


def refine_a_little(
    problem: Refinement, start: Rows, pool: Pool, rng: np.random.Generator, *, n_epochs: int
) -> tuple[Rows, Signs]:
    """Refine rows for a few epochs on a given pool: to see what a start promises."""
    rows = _unit_rows(start)
    steps = _Adam(rows, n_epochs * _n_batches(pool))
    return _climb(problem, pool, rows, problem.first_codes(start), steps, n_epochs, rng)


def _climb(
    problem: Refinement,
    pool: Pool,
    rows: Rows,
    v: Signs,
    steps: _Adam,
    n_epochs: int,
    rng: np.random.Generator,
) -> tuple[Rows, Signs]:
    """Epochs on one pool; the codes returned are those of the rows returned."""
    codes, theta = _Codes(problem, pool, v), None
    n_between = 1 if problem.n_bits <= _OFTEN_SWEPT_BITS else 2
    for epoch in range(n_epochs):
        if epoch % n_between == 0:
            v, theta = codes.follow(rows, v, theta)
            slopes = _slopes(problem, theta)
        rows = _epoch(problem, pool, rows, v, slopes, steps, rng)
    return rows, codes.follow(rows, v, theta)[0]


def _threshold_of(pairs: Pairs, beta: float, loss: Loss) -> float:
    """Theta of the codes that `pairs` hold."""
    similar, dissimilar = pairs.histograms()
    return best_threshold(similar, dissimilar, beta=beta, loss=loss)[0]


class _Codes:
    """The codes of a pool and of the database, kept packed while a pool serves."""

    def __init__(self, problem: Refinement, pool: Pool, v: Signs) -> None:
        self._problem = problem
        self._pool = pool
        self._pairs = pairs_of(pool.similarity, problem.n_bits)
        u = np.ones(len(pool.features), dtype=np.int8)
        for bit in range(problem.n_bits):
            self._pairs.add(u, v[bit])

    def follow(self, rows: Rows, v: Signs, theta: float | None) -> tuple[Signs, float]:
        """Codes V and theta for the rows as they are now; free codes make one sweep over their bits.

        The sweep goes by the theta before it; None where there was none.
        """
        problem, pairs, loss = self._problem, self._pairs, self._problem.scaled_loss
        u = _signs(self._pool.features, rows.query)
        if problem.side != FREE:
            v = problem.first_codes(rows)
        for bit in range(problem.n_bits):
            pairs.remove(bit)
            pairs.add(u[bit], v[bit], at=bit)
        if problem.side != FREE:
            return v, _threshold_of(pairs, problem.beta, loss)
        if theta is None:
            theta = _threshold_of(pairs, problem.beta, loss)
        v = v.copy()
        tables = gain_tables(problem.n_bits - 1, theta, problem.beta, loss)
        for bit in range(problem.n_bits):
            pairs.remove(bit)
            gain = pairs.gains(tables).transposed_times(u[bit])
            decided = gain != 0
            v[bit, decided] = signs_of(gain[decided])
            pairs.add(u[bit], v[bit], at=bit)
        return v, _threshold_of(pairs, problem.beta, loss)

    def settled(self, rows: Rows, v: Signs) -> Signs:
        """Codes V after several sweeps."""
        theta = None
        for _ in range(_LAST_SWEEPS):
            v, theta = self.follow(rows, v, theta)
        return v


class _Adam:
    """Steps of Adam on rows of unit length, shrinking to nothing over n_steps."""

    def __init__(self, rows: Rows, n_steps: int) -> None:
        self._n_steps = n_steps
        self._step = 0
        self._moments = [None if part is None else np.zeros((2, *part.shape), np.float32) for part in rows]

    def take(self, rows: Rows, ascent: tuple[Floats, Floats | None]) -> Rows:
        """Climb along `ascent`, one matrix for each side that has rows."""
        self._step += 1
        size = _STEP * (1.0 - self._step / (self._n_steps + 1))
        unbiased = 1.0 - _MOMENTUM**self._step, 1.0 - _SQUARES**self._step
        moved = []
        for part, slope, moments in zip(rows, ascent, self._moments, strict=True):
            if part is None or slope is None or moments is None:
                moved.append(part)
                continue
            mean, square = moments
            mean *= _MOMENTUM
            mean += (1.0 - _MOMENTUM) * slope
            square *= _SQUARES
            square += (1.0 - _SQUARES) * slope * slope
            towards = (mean / unbiased[0]) / (np.sqrt(square / unbiased[1]) + np.float32(1e-12))
            moved.append(_unit(part + np.float32(size) * towards))
        assert moved[0] is not None
        return Rows(moved[0], moved[1])


def _epoch(
    problem: Refinement,
    pool: Pool,
    rows: Rows,
    v: Signs,
    slopes: tuple[Floats, Floats],
    steps: _Adam,
    rng: np.random.Generator,
) -> Rows:
    """Show every query of the pool once, in batches."""
    seen, database = None, problem.database
    if pool.similarity.n_items > _MOST_ITEMS:
        seen = np.sort(rng.choice(pool.similarity.n_items, _MOST_ITEMS, replace=False))
        v = v[:, seen]
        database = database[seen] if problem.side != FREE else database
    words = _words(v) if problem.side == FREE else None
    for chosen in np.array_split(rng.permutation(len(pool.features)), _n_batches(pool)):
        similar = _positives(pool.similarity, chosen, seen)
        u = _Thresholds(pool.features[chosen], rows.query)
        if words is not None:
            rows = steps.take(rows, (u.ascent(_pulls(u.words, words, similar, slopes)), None))
            continue
        w = _Thresholds(database, rows.query if rows.database is None else rows.database)
        ascent = u.ascent(_pulls(u.words, w.words, similar, slopes))
        other = w.ascent(_pulls(w.words, u.words, _transposed(similar, len(w.words)), slopes))
        rows = steps.take(rows, (ascent + other, None) if problem.side == SHARED else (ascent, other))
    return rows


def _positives(
    similarity: Similarity, queries: NDArray[np.int64], items: NDArray[np.int64] | None
) -> Positives:
    """Similar items of some queries; where `items` are given only those among them, numbered by their place.

    A whole permuted copy would take more memory than all else where a third of the pairs are similar.
    """
    first = similarity.indptr[queries]
    sizes = similarity.indptr[queries + 1] - first
    starts = np.concatenate([[0], np.cumsum(sizes)])
    indices = similarity.indices[np.arange(starts[-1]) + np.repeat(first - starts[:-1], sizes)]
    if items is None:
        return starts, indices.astype(np.int32, copy=False)
    places = np.searchsorted(items, indices)
    kept = items[np.minimum(places, len(items) - 1)] == indices
    return np.concatenate([[0], np.cumsum(kept)])[starts], places[kept].astype(np.int32)


def _transposed(positives: Positives, n_items: int) -> Positives:
    """Similar queries of each item."""
    starts, indices = positives
    ones = np.ones(len(indices), dtype=np.int8)
    by_item = sp.csr_array((ones, indices, starts), shape=(len(starts) - 1, n_items)).tocsc()
    return by_item.indptr.astype(np.int64), by_item.indices.astype(np.int32)


class _Thresholds:
    """Codes of features by rows, and the way back through the sign, which is taken for a tanh there."""

    def __init__(self, features: Floats, rows: Floats) -> None:
        self._features = features
        self._projected = features @ rows.T
        self.words = BinaryCodes.from_bools(self._projected >= 0).words

    def ascent(self, pulls: Floats) -> Floats:
        """Direction in which rows (k, d) follow the pulls (m, k) on their bits."""
        sizes = np.abs(self._projected).mean(axis=0) + np.float32(1e-12)
        steepness = np.float32(_SLOPE) / sizes
        bent = np.tanh(self._projected * steepness)
        ascent: Floats = (pulls * (1.0 - bent * bent) * steepness).T @ self._features
        return ascent


def _pulls(
    queries: NDArray[np.uint64], items: NDArray[np.uint64], similar: Positives, slopes: tuple[Floats, Floats]
) -> Floats:
    """Slope of the objective towards +1 for each bit of each query: sum_j G_ij v_jt, G by the distance of the pair."""
    multiply = reference.code_gradients if kernels.level() == kernels.REFERENCE else training.code_gradients
    return multiply(queries, items, similar, len(slopes[0]) - 1, slopes)


def _slopes(problem: Refinement, theta: float) -> tuple[Floats, Floats]:
    """G at every distance, (dissimilar, similar): how fast the loss of a pair falls as its inner product grows.

    Differences of the loss between the distances on either side; at the ends the table goes on as a straight line. Adam
    sees no common factor, so the largest is made 1.
    """
    tables = pair_loss(problem.n_bits, theta, problem.beta, problem.scaled_loss)
    falls = []
    for table in (tables.dissimilar, tables.similar):
        inner = np.concatenate([[2 * table[0] - table[1]], table, [2 * table[-1] - table[-2]]])
        falls.append(inner[2:] - inner[:-2])
    largest = max(float(np.abs(fall).max()) for fall in falls)
    dissimilar, similar = ((fall / max(largest, 1e-300)).astype(np.float32) for fall in falls)
    return dissimilar, similar


def _unit_rows(rows: Rows) -> Rows:
    return Rows(_unit(rows.query), None if rows.database is None else _unit(rows.database))


def _n_batches(pool: Pool) -> int:
    return max(1, len(pool.features) // _BATCH)


def _signs(features: Floats, rows: Floats) -> Signs:
    """Codes (k, n), a row for each bit."""
    return signs_of(rows @ features.T)


def _words(signs: Signs) -> NDArray[np.uint64]:
    return BinaryCodes.from_bools(signs.T > 0).words


def _unit(rows: NDArray[np.floating[Any]]) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
