"""From several starts to one refined code, chosen without a look at anybody's test queries.

Few bits have many local optima: at 8 bits AP differs by up to .03 with the start alone. So a few starts are refined
for a few epochs each, in a few units of the loss, on a part of the problem that is large enough to tell them apart, and
the best goes on with all of it. What judges is pooled average precision of queries that nobody learned from: synthetic
ones where the similarity is a distance, else a fifth of the real ones, held out. These learn with the others in
the end, so that it is the scout, not the result, that they have judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asymhash.codes import BinaryCodes
from asymhash.evaluate import average_precision
from asymhash.learn.refine import OWN, SHARED, Pool, Refinement, Rows, Signs, refine, refine_a_little
from asymhash.rotation import best_rotation

__all__ = ["Greedy", "Refined", "best_refined"]

Ids = NDArray[np.int64]

# A part of this many queries and items tells starts apart as well as the whole, if the judges have some similar items
# in it: of a sparse similarity the part has more items, up to a bound.
_PART, _MOST_ITEMS = 4000, 65536
_N_JUDGES, _JUDGED_PAIRS = 2500, 5000
_HELD_OUT, _FEWEST_HELD_OUT = 0.2, 8
_SCOUT_EPOCHS, _SHARED_EPOCHS = 5, 8
# Rotations differ by .01 of AP at 8 bits, and cost next to nothing; the best of a few is taken.
_ROTATION_STEPS, _N_ROTATIONS = 20, 4
# Units of the loss, as multiples of the usual one. Half of it gives .01 to .03 more AP at 8 bits on sets of images, and
# less on Uniform and Nursery. Double gives .01 to .03 more for labels at 16 and 32 bits, and loses .05 for distances.
_SHORT_BITS = 16
_SHORT_SCALES, _LABEL_SCALES = (1.0, 0.5), (1.0, 2.0)
# Directions with less than this share of the largest variance are rounding.
_RANK_TOLERANCE = 1e-8


class Greedy(NamedTuple):
    """What the descent over single bits learned: maps, and codes (k, n) of the database."""

    rows: Rows
    codes: Signs


class Refined(NamedTuple):
    """What was chosen: maps, codes (k, n) of the database, the unit of the loss, and where it comes from."""

    rows: Rows
    codes: Signs
    scale: float
    name: str


class _Scout(NamedTuple):
    """A start, or where it came to, and what the judges say."""

    score: float
    name: str
    scale: float
    rows: Rows


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of the problem on which starts compete, what the descent learned there, and who judges."""

    problem: Refinement
    items: Ids
    greedy: Greedy
    judges: Pool

    def score(self, rows: Rows, codes: Signs) -> float:
        """Average precision of the judges among the part's items."""
        queries = BinaryCodes.from_bools(self.judges.features @ rows.query.T >= 0)
        return average_precision(queries, BinaryCodes.from_bools(codes.T > 0), self.judges.similarity)


def best_refined(
    problem: Refinement,
    greedy: Greedy,
    *,
    descend: Callable[[Refinement, np.random.Generator], Greedy],
    may_change_scale: bool,
    rng: np.random.Generator,
) -> Refined:
    """Refine the most promising start.

    Parameters
    ----------
    problem, greedy
        The problem, and where the descent over single bits arrived.
    descend
        That descent, for a part of the problem: where queries are held out it must not have seen them.
    may_change_scale
        Whether other units of the loss may be tried.
    rng
        Of everything random.
    """
    part = _part_of(problem, greedy, descend, rng)
    if part is None:  # too few queries or similar pairs to choose by
        rows, codes = refine(problem, greedy.rows, rng)
        return Refined(rows, codes, problem.scale, "refined greedy")
    scales = [problem.scale * factor for factor in (_scales(problem) if may_change_scale else (1.0,))]
    starts, scouts = [], []
    pool = part.problem.pool(rng)
    for name, start in _starts(part, pool, rng):
        codes = part.greedy.codes if name == "greedy" else part.problem.first_codes(start)
        starts.append(_Scout(part.score(start, codes), name, problem.scale, start))
        for scale in scales:
            in_scale = part.problem.with_scale(scale)
            rows, codes = refine_a_little(in_scale, start, pool, rng, n_epochs=_SCOUT_EPOCHS)
            scouts.append(_Scout(part.score(rows, codes), name, scale, rows))
    plain, scout = (max(found, key=lambda one: one.score) for found in (starts, scouts))
    rows, codes = refine(problem.with_scale(scout.scale), scout.rows, rng)
    # Where queries are held out the last run has learned from them, so that only the scout can be compared.
    reached = scout.score if part.problem.draw is None else part.score(rows, codes[:, part.items])
    if reached >= plain.score:
        return Refined(rows, codes, scout.scale, f"refined {scout.name}")
    if plain.name == "greedy":
        return Refined(greedy.rows, greedy.codes, problem.scale, "greedy")
    return Refined(plain.rows, problem.first_codes(plain.rows), problem.scale, plain.name)


def _scales(problem: Refinement) -> tuple[float, ...]:
    scales = _SHORT_SCALES if problem.n_bits <= _SHORT_BITS else (1.0,)
    return scales if problem.draw is not None else tuple(dict.fromkeys(scales + _LABEL_SCALES))


def _part_of(
    problem: Refinement,
    greedy: Greedy,
    descend: Callable[[Refinement, np.random.Generator], Greedy],
    rng: np.random.Generator,
) -> _Part | None:
    similarity = problem.real.similarity
    n_judges = _N_JUDGES if problem.draw is not None else _HELD_OUT * min(_PART, similarity.n_queries)
    n_needed = _JUDGED_PAIRS / max(n_judges * similarity.share_positive, 1e-9)
    queries = _some(similarity.n_queries, _PART, rng)
    items = _some(similarity.n_items, int(np.clip(n_needed, _PART, _MOST_ITEMS)), rng)
    if problem.draw is not None:
        part = problem.part(queries, items)
        assert part.draw is not None
        # Not the real queries as well: free codes remember them, and the greedy ones most of all. With 1000 queries of
        # 10,000 items they judged a code of AP .064 for new queries better than one of .154.
        judges = part.draw(_N_JUDGES, rng)
        if judges.similarity.n_positives == 0:
            return None
        return _Part(part, items, Greedy(greedy.rows, greedy.codes[:, items]), judges)
    held = np.zeros(len(queries), dtype=bool)
    held[rng.permutation(len(queries))[: round(_HELD_OUT * len(queries))]] = True
    part, judges = problem.part(queries[~held], items), problem.part(queries[held], items).real
    few = np.count_nonzero(held) < _FEWEST_HELD_OUT
    if few or judges.similarity.n_positives == 0 or part.real.similarity.n_positives == 0:
        return None
    return _Part(part, items, descend(part, rng), judges)


def _some(n: int, most: int, rng: np.random.Generator) -> Ids:
    """Numbers of all, or of a random part where there are more."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def _starts(part: _Part, pool: Pool, rng: np.random.Generator) -> Iterator[tuple[str, Rows]]:
    """Yield the descent's result, a rotation of the principal components, and the symmetric code refined from it."""
    problem = part.problem

    def both(row: NDArray[np.float32]) -> Rows:
        return Rows(row, row if problem.side == OWN else None)

    components = _components(problem.real.features, problem.n_bits)
    rotations = [both(_rotation(*components, problem.n_bits, rng)) for _ in range(_N_ROTATIONS)]
    rotation = max(rotations, key=lambda rows: part.score(rows, problem.first_codes(rows)))
    yield "greedy", part.greedy.rows
    yield "rotation", rotation
    if problem.side != SHARED:
        symmetric = replace(problem, side=SHARED)
        rows, _ = refine_a_little(symmetric, Rows(rotation.query), pool, rng, n_epochs=_SHARED_EPOCHS)
        yield "symmetric", both(rows.query)


def _components(
    features: NDArray[np.float32], n_bits: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Principal directions (d, c) of features, as many as bits where there are so many, and the features along them."""
    centred = features.astype(np.float64) - features.mean(axis=0, dtype=np.float64)
    squares, directions = np.linalg.eigh(centred.T @ centred)
    kept = np.flatnonzero(squares > _RANK_TOLERANCE * max(float(squares[-1]), np.finfo(float).tiny))[::-1]
    directions = directions[:, kept[:n_bits]]
    return directions, centred @ directions


def _rotation(
    directions: NDArray[np.float64], values: NDArray[np.float64], n_bits: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Rows as ITQ finds them, in as many rotations of all directions as it takes to have n_bits of them."""
    if not directions.shape[1]:  # all queries are the same
        return rng.standard_normal((n_bits, len(directions))).astype(np.float32)
    n_rotations = -(-n_bits // directions.shape[1])
    rows = [(directions @ best_rotation(values, _ROTATION_STEPS, rng)).T for _ in range(n_rotations)]
    return np.concatenate(rows)[:n_bits].astype(np.float32)
