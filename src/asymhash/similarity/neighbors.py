"""Similarity from Euclidean distances: within a radius, which is given or follows from an average."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asymhash.checks import check_choice, check_integer, check_number, check_vectors
from asymhash.errors import invalid
from asymhash.similarity.distances import PairDistances, Tile
from asymhash.similarity.selection import kth_distances, pooled_radius
from asymhash.similarity.similarity import OriginValue, Similarity

__all__ = ["neighbors"]

RULES = ("pooled", "mean_kth")


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
    pairs = PairDistances(query_vectors, items, block_size)
    if average is not None:
        average = _checked_average(average, pairs, rule)
        radius = _radius(pairs, average, rule)
    assert radius is not None
    strict = rule == "mean_kth"
    indptr, indices = _within(pairs, radius, strict=strict)
    origin: dict[str, OriginValue] = {"kind": where, "average": average, "radius": radius}
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


def _radius(pairs: PairDistances, average: float, rule: str) -> float:
    if rule == "pooled":
        return pooled_radius(pairs, average)
    # fsum is exact, so that the order of blocks cannot matter.
    total: float = math.fsum(kth_distances(pairs, int(average)).tolist())
    return total / pairs.n_queries


def _within(
    pairs: PairDistances, radius: float, *, strict: bool
) -> tuple[NDArray[np.int64], NDArray[np.int32] | NDArray[np.int64]]:
    """Return indptr and indices of the pairs within the radius."""
    dtype = np.int32 if pairs.n_items <= np.iinfo(np.int32).max else np.int64
    # For each block of queries, positives of one tile after the other: (query within the block, item).
    found: dict[int, list[tuple[NDArray[np.int32], NDArray[np.int64]]]] = {
        rows.start: [] for rows in pairs.row_blocks()
    }
    for tile in pairs.tiles():
        rows, columns = np.nonzero(_similar(pairs, tile, radius, strict=strict))
        if tile.is_mirrored:
            order = np.argsort(columns, kind="stable")
            mirrored = (rows[order] + tile.rows.start).astype(dtype)
            found[tile.columns.start].append((columns[order].astype(np.int32), mirrored))
        found[tile.rows.start].append((rows.astype(np.int32), (columns + tile.columns.start).astype(dtype)))
    sizes, indices = [np.zeros(1, dtype=np.int64)], []
    for block in pairs.row_blocks():
        parts = found.pop(block.start)
        owners = np.concatenate([owner for owner, _ in parts])
        sizes.append(np.bincount(owners, minlength=block.stop - block.start))
        # Tiles come in increasing order of items, so a stable sort by query leaves each query's items sorted.
        indices.append(np.concatenate([items for _, items in parts])[np.argsort(owners, kind="stable")])
    return np.cumsum(np.concatenate(sizes)), np.concatenate(indices)


def _similar(pairs: PairDistances, tile: Tile, radius: float, *, strict: bool) -> NDArray[np.bool_]:
    squares = pairs.squares(tile)
    # A radius beyond every distance may be too large to be squared.
    square = min(radius, 2 * math.sqrt(pairs.largest_square) + 1.0) ** 2
    margin = pairs.tolerance + 8 * float(np.finfo(np.float64).eps) * square
    similar: NDArray[np.bool_] = squares < square - margin
    rows, columns = np.nonzero(np.abs(squares - square) <= margin)
    direct = pairs.direct(rows + tile.rows.start, columns + tile.columns.start)
    similar[rows, columns] = direct < radius if strict else direct <= radius
    if pairs.is_self and tile.is_diagonal:
        np.fill_diagonal(similar, True)
    return similar
