"""Similarity from Euclidean distances: within a radius, which is given or follows from an average."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asymhash.checks import check_choice, check_integer, check_number, check_vectors
from asymhash.errors import invalid
from asymhash.kernels import append_runs
from asymhash.similarity.distances import Ids, PairDistances, Precision, scale_of
from asymhash.similarity.ranks import kth_distances
from asymhash.similarity.scanning import Bounds, Collected, FoundTile, panels, scan
from asymhash.similarity.selection import Sample, pooled_radius
from asymhash.similarity.similarity import OriginValue, Similarity

__all__ = ["neighbors"]

RULES = ("pooled", "mean_kth")

_T = TypeVar("_T")


def neighbors(
    queries: ArrayLike,
    database: ArrayLike | None = None,
    *,
    average: float | None = None,
    radius: float | None = None,
    rule: str = "pooled",
    block_size: int | None = None,
) -> Similarity:
    """Make points within a radius of each other similar; use it where similar means near.

    Distances are exact: no block size, thread count or BLAS changes which pairs are similar.

    Parameters
    ----------
    queries : array of shape (m, d)
    database : array of shape (n, d), optional
        By default the queries are the database; then a point is always similar to itself.
    average : float, optional
        How many similar items a query has on average; decides the radius. Give this or `radius`.
    radius : float, optional
        The radius itself, for instance `similarity.radius` of the training points.
    rule : {"pooled", "mean_kth"}, default "pooled"
        "pooled": the smallest radius with at least `average` similar items per query, a point itself not
        counted; similar is `distance <= radius`. "mean_kth": the rule of the paper's released code, the mean
        over queries of the `average`-th smallest distance, a point itself counted; similar is
        `distance < radius`.
    block_size : int, optional
        Queries and items compared at once; changes memory and time only.

    Returns
    -------
    Similarity of shape (m, n)
        Its `radius` is the one used.

    Examples
    --------
    >>> import numpy as np
    >>> from asymhash.similarity import neighbors
    >>> points = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> neighbors(points, average=1).radius
    2.0
    >>> neighbors(points, average=2, rule="mean_kth").radius
    2.0
    >>> neighbors(points, average=1).to_dense()
    array([[ 1,  1, -1, -1],
           [ 1,  1,  1, -1],
           [-1,  1,  1, -1],
           [-1, -1, -1,  1]], dtype=int8)
    """
    where = "neighbors"
    rule = check_choice(rule, where=where, name="rule", choices=RULES)
    if (average is None) == (radius is None):
        found = "neither" if average is None else "both"
        raise invalid(where, "either average or radius must be given", found, "Give average= or radius=.")
    query_vectors = check_vectors(queries, where=where, name="queries")
    items = None
    if database is not None:
        items = check_vectors(database, where=where, name="database", n_features=query_vectors.shape[1])
    if block_size is not None:
        block_size = check_integer(block_size, where=where, name="block_size", low=1)
    if radius is not None:
        radius = check_number(radius, where=where, name="radius", low=0.0)
    scale = scale_of(query_vectors, items)
    if scale == 1.0:
        return _neighbors(PairDistances(query_vectors, items, block_size), average, radius, rule)
    pairs = PairDistances(query_vectors * scale, None if items is None else items * scale, block_size)
    larger = _neighbors(pairs, average, None if radius is None else radius * scale, rule)
    assert larger.radius is not None
    own = larger.radius / scale if radius is None else radius
    return Similarity(larger.indptr, larger.indices, larger.shape, origin={**larger.origin, "radius": own})


def _neighbors(pairs: PairDistances, average: float | None, radius: float | None, rule: str) -> Similarity:
    strict = rule == "mean_kth"
    kept = None
    if average is None:
        assert radius is not None
        precision = Sample(pairs).precision_for(_square(pairs, radius))
    else:
        average = _checked_average(average, pairs, rule)
        if rule == "pooled":
            pooled = pooled_radius(pairs, average)
            radius, precision, kept = pooled.radius, pooled.precision, pooled.kept
        else:
            # fsum is exact, so that the order of blocks cannot matter.
            radius = math.fsum(kth_distances(pairs, int(average)).tolist()) / pairs.n_queries
            precision = Sample(pairs).precision_for(_square(pairs, radius))
    indptr, indices = _within(_Within(pairs, precision, radius, strict), kept)
    origin: dict[str, OriginValue] = {"kind": "neighbors", "average": average, "radius": radius}
    origin |= {"rule": rule, "strict": strict}
    return Similarity(indptr, indices, (pairs.n_queries, pairs.n_items), origin=origin)


def _checked_average(average: float, pairs: PairDistances, rule: str) -> float:
    where, name = "neighbors", "average"
    others = pairs.n_items - 1 if pairs.is_self and rule == "pooled" else pairs.n_items
    if others == 0:
        raise invalid(where, "queries must have at least two points to find an average", "1 point")
    if rule == "mean_kth":
        return check_integer(average, where=where, name=name, low=1, high=others)
    value = check_number(average, where=where, name=name, above=0.0, high=others)
    return int(value) if value == int(value) else value


def _square(pairs: PairDistances, radius: float) -> float:
    # A radius beyond every distance may be too large to be squared.
    return min(radius, 2 * math.sqrt(pairs.largest_square) + 1.0) ** 2


@dataclass(frozen=True)
class _Within:
    """Which of the pairs found in a tile are within the radius."""

    pairs: PairDistances
    precision: Precision
    radius: float
    strict: bool

    @property
    def square(self) -> float:
        """The square of the radius, or of one beyond all distances."""
        return _square(self.pairs, self.radius)

    @property
    def margin(self) -> float:
        """How near a square may be to that of the radius and still be on its other side."""
        # The bounds are rounded to the precision of the product, and the square was.
        eps = float(np.finfo(self.precision.dtype).eps)
        return self.precision.tolerance + 8 * eps * self.square

    def chosen(self, found: Collected) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return how many items each query has within the radius, and the items query by query."""
        return found.chosen(self._kept(found.values, found.pairs))

    def run(self, tile: FoundTile) -> _Run:
        """Return the same of one tile."""
        keep = self._kept(tile.found.values, tile.pairs)
        rows, items = slice(tile.first, tile.stop), tile.found.columns + np.int32(tile.start)
        if keep.all():
            return _Run(rows, tile.found.inside, items)
        return _Run(rows, np.bincount(tile.owners[keep], minlength=tile.rows.size), items[keep])

    def _kept(
        self, values: NDArray[Any], pairs_of: Callable[[NDArray[Any]], tuple[Ids, Ids]]
    ) -> NDArray[np.bool_]:
        keep: NDArray[np.bool_] = values < self.square - self.margin
        near = np.flatnonzero(~keep & (values <= self.square + self.margin))
        if near.size:
            direct = self.pairs.direct(*pairs_of(near))
            keep[near] = direct < self.radius if self.strict else direct <= self.radius
        return keep


class _Run(NamedTuple):
    """Items for each of some rows of a panel, row after row."""

    rows: slice
    counts: NDArray[np.int64]
    items: NDArray[np.int32]


def _within(within: _Within, kept: list[Collected] | None) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return indptr and indices of the pairs within the radius; `kept` is what may be within it, if known."""
    sizes, indices = [np.zeros(1, dtype=np.int64)], []
    found = map(within.chosen, _let_go(kept)) if kept else _scanned(within)
    for counts, items in found:
        sizes.append(counts)
        indices.append(items)
    return np.cumsum(np.concatenate(sizes)), _joined(indices)


def _scanned(within: _Within) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    """Yield, for each panel of queries, how many items are within the radius, and the items."""
    bounds = Bounds(-np.inf, within.square + 2 * within.margin, own=-np.inf)
    for panel in panels(within.pairs):
        runs = list(scan(within.pairs, panel, within.precision, bounds, within.run))
        counts = np.zeros(panel.size, dtype=np.int64)
        for run in runs:
            counts[run.rows] += run.counts
        cursors = np.cumsum(counts) - counts
        items = np.empty(int(counts.sum()), dtype=np.int32)
        # Strips come in increasing order of items: appending leaves each query's items sorted.
        for run in _let_go(runs):
            append_runs(run.items, run.counts, cursors[run.rows], items)
        yield counts, items


def _let_go(parts: list[_T]) -> Iterator[_T]:
    """Yield all parts in order, and forget each, so that its memory is free again once it is used."""
    parts.reverse()
    while parts:
        yield parts.pop()


def _joined(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Put arrays together, letting go of each as soon as it is copied; read-only, so that nobody copies again."""
    whole = np.empty(sum(part.size for part in parts), dtype=np.int32)
    start = 0
    for part in _let_go(parts):
        whole[start : start + part.size] = part
        start += part.size
    whole.flags.writeable = False
    return whole
