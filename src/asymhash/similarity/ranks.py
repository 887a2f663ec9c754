"""The k nearest items of each query: their distance, or themselves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asymhash.similarity.distances import Floats, Ids, PairDistances, Precision
from asymhash.similarity.scanning import Bounds, collect, panels
from asymhash.similarity.selection import Sample

__all__ = ["kth_distances", "nearest_items"]

_SAMPLE_ITEMS = 8192
_DEVIATIONS = (
    4  # standard deviations beyond what the sample says: one query in thirty thousand has too few then
)
_PANEL_PAIRS = 1 << 24  # candidates of a panel, 24 bytes each at most
_SAMPLE_ROWS = 256


@dataclass(frozen=True)
class _Candidates:
    """All items that may be among the k nearest of some queries, query after query, items in order."""

    rows: Ids
    starts: Ids
    items: Ids
    values: NDArray[Any]
    kth: Floats  # k-th smallest square of each query, within the tolerance


def kth_distances(pairs: PairDistances, k: int) -> Floats:
    """Return each query's k-th smallest distance (itself counted in the self case), shape (m,)."""
    result = np.empty(pairs.n_queries)
    for found, precision in _candidates(pairs, k):
        owners, before, near = _near_kth(found, precision)
        distances = pairs.direct(found.rows[owners[near]], found.items[near])
        order = np.lexsort((distances, owners[near]))
        starts = np.searchsorted(owners[near][order], np.arange(found.rows.size))
        result[found.rows] = distances[order][starts + (k - 1 - before)]
    return result


def nearest_items(pairs: PairDistances, k: int) -> NDArray[np.int64]:
    """Return each query's k nearest items, equal distances by the smaller item, sorted by item, shape (m, k)."""
    result = np.empty((pairs.n_queries, k), dtype=np.int64)
    for found, precision in _candidates(pairs, k):
        owners, before, near = _near_kth(found, precision)
        surely = np.flatnonzero(found.values < found.kth[owners] - 2 * precision.tolerance)
        owner, item = owners[near], found.items[near]
        order = np.lexsort((item, pairs.direct(found.rows[owner], item), owner))
        place = np.arange(order.size) - np.searchsorted(owner, owner[order])
        order = order[place < (k - before)[owner[order]]]
        chosen_owners = np.concatenate([owners[surely], owner[order]])
        chosen = np.concatenate([found.items[surely], item[order]])
        result[found.rows] = chosen[np.lexsort((chosen, chosen_owners))].reshape(-1, k)
    return result


def _near_kth(found: _Candidates, precision: Precision) -> tuple[Ids, Ids, Ids]:
    """Return the query of every candidate, how many are surely before the k-th, and which may be it."""
    owners = np.repeat(np.arange(found.rows.size), np.diff(found.starts))
    distance = found.values - found.kth[owners]
    before = np.bincount(owners[distance < -2 * precision.tolerance], minlength=found.rows.size)
    return owners, before, np.flatnonzero(np.abs(distance) <= 2 * precision.tolerance)


def _candidates(pairs: PairDistances, k: int) -> Iterator[tuple[_Candidates, Precision]]:
    """Yield candidates of all queries: one pass below bounds from a sample, another for the few that were too low."""
    sample = Sample(pairs)
    precision = sample.precision_for(sample.square_of(k / pairs.n_items))
    columns = np.sort(np.random.default_rng(0).permutation(pairs.n_items)[:_SAMPLE_ITEMS])
    share = k * columns.size / pairs.n_items
    spare = _DEVIATIONS * (math.sqrt(share) + 1)
    place = k if columns.size == pairs.n_items else math.ceil(share + spare)
    expected = max(k, pairs.n_items if place > columns.size else place * pairs.n_items // columns.size)
    for panel in panels(pairs, at_most=_PANEL_PAIRS // expected):
        bounds = np.full(panel.size, np.inf)
        if place <= columns.size:
            for start in range(0, panel.size, _SAMPLE_ROWS):
                squares = pairs.squares(panel[start : start + _SAMPLE_ROWS], columns, precision)
                squares.partition(place - 1, axis=1)
                bounds[start : start + _SAMPLE_ROWS] = squares[:, place - 1]
        bounds += 4 * precision.tolerance
        found = _below(pairs, panel, k, precision, bounds)
        is_whole = found.kth + 2 * precision.tolerance <= bounds
        # Those who have k may look just as far as they need, the others must look at all items.
        bounds = found.kth + 6 * precision.tolerance
        yield _chosen(found, is_whole), precision
        again = np.flatnonzero(~is_whole)
        step = max(1, _PANEL_PAIRS // pairs.n_items)
        for start in range(0, again.size, step):
            part = again[start : start + step]
            yield _below(pairs, panel[part], k, precision, bounds[part]), precision


def _below(pairs: PairDistances, panel: Ids, k: int, precision: Precision, bounds: Floats) -> _Candidates:
    """Collect all items below the bounds; the k-th is infinite where there are fewer than k."""
    found = collect(pairs, panel, precision, Bounds(-np.inf, bounds))
    assert found is not None
    order = np.argsort(found.owners, kind="stable")
    items, values = found.items[order].astype(np.int64), found.values[order]
    starts = np.concatenate([[0], np.cumsum(np.bincount(found.owners, minlength=panel.size))])
    kth = np.full(panel.size, np.inf)
    for row in np.flatnonzero(np.diff(starts) >= k):
        kth[row] = np.partition(values[starts[row] : starts[row + 1]], k - 1)[k - 1]
    return _Candidates(panel, starts, items, values, kth)


def _chosen(found: _Candidates, which: NDArray[np.bool_]) -> _Candidates:
    if which.all():
        return found
    sizes = np.diff(found.starts)
    kept = np.repeat(which, sizes)
    starts = np.concatenate([[0], np.cumsum(sizes[which])])
    return _Candidates(found.rows[which], starts, found.items[kept], found.values[kept], found.kth[which])
