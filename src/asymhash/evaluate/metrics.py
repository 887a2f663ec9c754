"""Metrics of codes against a similarity: pure functions, exact, from counts by Hamming distance.

Tied distances are the normal case with short codes, so every metric says what it does with them. In the
formulas n is the number of items at a distance, p the number of similar ones among them, R and P the same for
all smaller distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma

from asymhash import kernels
from asymhash.checks import check_choice, check_integer, read_array
from asymhash.codes import BinaryCodes
from asymhash.errors import invalid, invalid_type
from asymhash.evaluate.histograms import DistanceHistograms, check_codes, count_pairs, distance_histograms
from asymhash.similarity import Similarity

__all__ = [
    "DistanceHistograms",
    "PrecisionRecall",
    "average_precision",
    "average_precisions",
    "distance_histograms",
    "precision_recall",
    "recall_at",
    "recall_at_k",
]

Rule: TypeAlias = Literal["step", "anchored", "expected"]
Over: TypeAlias = Literal["pairs", "queries"]
Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

RULES: tuple[Rule, ...] = ("step", "anchored", "expected")
OVER: tuple[Over, ...] = ("pairs", "queries")

_BLOCK_ROWS = 4096  # queries scored at once
_BLOCK_PAIRS = 1 << 24  # distances held at once by recall_at_k: 32 MiB


@dataclass(frozen=True, slots=True, eq=False)
class PrecisionRecall:
    """One point for each Hamming radius at which something is retrieved, pooled over all queries.

    Attributes
    ----------
    radius : int64 array of shape (points,)
    precision, recall : float64 arrays of shape (points,)
    retrieved : int64 array of shape (points,)
        Pairs within the radius.
    """

    radius: Counts
    precision: Floats
    recall: Floats
    retrieved: Counts


def precision_recall(
    query_codes: BinaryCodes | DistanceHistograms,
    database_codes: BinaryCodes | None = None,
    similarity: Similarity | None = None,
) -> PrecisionRecall:
    """Trace precision against recall over the Hamming radius, as the paper's figures do.

    Parameters
    ----------
    query_codes : BinaryCodes of m queries, or DistanceHistograms (then nothing else is given)
    database_codes : BinaryCodes of n items
    similarity : Similarity of shape (m, n)

    Returns
    -------
    PrecisionRecall

    Examples
    --------
    >>> from asymhash.codes import BinaryCodes
    >>> from asymhash.evaluate import precision_recall
    >>> from asymhash.similarity import Similarity
    >>> queries, items = BinaryCodes.from_signs([[1, 1]]), BinaryCodes.from_signs([[1, 1], [1, -1], [-1, 1]])
    >>> curve = precision_recall(queries, items, Similarity([0, 2], [0, 1], (1, 3)))
    >>> curve.radius, curve.recall
    (array([0, 1, 2]), array([0.5, 1. , 1. ]))
    """
    histograms = _histograms(query_codes, database_codes, similarity, "precision_recall")
    retrieved = histograms.all.sum(axis=0).cumsum()
    found = histograms.positive.sum(axis=0).cumsum()
    radius = np.flatnonzero(retrieved > 0)  # where nothing is retrieved there is no precision
    precision = found[radius] / retrieved[radius]
    return PrecisionRecall(radius, precision, found[radius] / found[-1], retrieved[radius])


def average_precision(
    query_codes: BinaryCodes | DistanceHistograms,
    database_codes: BinaryCodes | None = None,
    similarity: Similarity | None = None,
    *,
    rule: Rule = "step",
    over: Over = "pairs",
) -> float:
    """Score a ranking by Hamming distance with one number; use "step" for what a user gets.

    Parameters
    ----------
    query_codes : BinaryCodes of m queries, or DistanceHistograms (then no other codes are given)
    database_codes : BinaryCodes of n items
    similarity : Similarity of shape (m, n)
    rule : {"step", "anchored", "expected"}, default "step"
        "step": precision at each radius times the recall it adds, as in scikit-learn. "anchored": the area by
        the trapezoid rule from the point (recall 0, precision 1), as in the paper. "expected": the mean over
        random orders of items at equal distance.
    over : {"pairs", "queries"}, default "pairs"
        "pairs": one ranking of all pairs. "queries": the mean over queries that have a similar item.

    Returns
    -------
    float

    Examples
    --------
    >>> from asymhash.codes import BinaryCodes
    >>> from asymhash.evaluate import average_precision
    >>> from asymhash.similarity import Similarity
    >>> queries, items = BinaryCodes.from_signs([[1, 1]]), BinaryCodes.from_signs([[1, 1], [1, -1], [-1, 1]])
    >>> round(average_precision(queries, items, Similarity([0, 2], [0, 1], (1, 3))), 4)
    0.8333
    """
    where = "average_precision"
    check_choice(rule, where=where, name="rule", choices=RULES)
    check_choice(over, where=where, name="over", choices=OVER)
    histograms = _histograms(query_codes, database_codes, similarity, where)
    return _average_precision(histograms, rule, over)


def average_precisions(
    query_codes: BinaryCodes | DistanceHistograms,
    database_codes: BinaryCodes | None = None,
    similarity: Similarity | None = None,
) -> dict[str, float]:
    """Compute `average_precision` by every rule over pairs and over queries; for tables.

    Parameters
    ----------
    query_codes, database_codes, similarity
        As for `average_precision`.

    Returns
    -------
    dict of str to float
        Keys are rule and over joined by an underscore, such as "step_pairs" and "anchored_queries".
    """
    histograms = _histograms(query_codes, database_codes, similarity, "average_precisions")
    return {f"{rule}_{over}": _average_precision(histograms, rule, over) for over in OVER for rule in RULES}


def recall_at(
    query_codes: BinaryCodes | DistanceHistograms,
    database_codes: BinaryCodes | None = None,
    similarity: Similarity | None = None,
    *,
    retrieved: int | Sequence[int],
) -> Floats:
    """Tell which share of the similar items is among the first R, on average over queries that have any.

    Items at equal distance come in random order; the expectation over it is taken exactly.

    Parameters
    ----------
    query_codes : BinaryCodes of m queries, or DistanceHistograms (then no other codes are given)
    database_codes : BinaryCodes of n items
    similarity : Similarity of shape (m, n)
    retrieved : int or sequence of int
        The values of R; one beyond n counts as n.

    Returns
    -------
    float64 array, one entry for each R

    Examples
    --------
    >>> from asymhash.codes import BinaryCodes
    >>> from asymhash.evaluate import recall_at
    >>> from asymhash.similarity import Similarity
    >>> queries, items = BinaryCodes.from_signs([[1, 1]]), BinaryCodes.from_signs([[1, 1], [1, -1], [-1, 1]])
    >>> recall_at(queries, items, Similarity([0, 2], [0, 1], (1, 3)), retrieved=[1, 2, 3])
    array([0.5 , 0.75, 1.  ])
    """
    where = "recall_at"
    sizes = _sizes(retrieved, where)
    histograms = _histograms(query_codes, database_codes, similarity, where)
    has_positive = histograms.positive.any(axis=1)
    counts, positive = histograms.all[has_positive], histograms.positive[has_positive]
    before = counts.cumsum(axis=1) - counts
    total = positive.sum(axis=1)
    recalls = []
    for size in sizes:
        taken = np.clip(size - before, 0, counts)
        found = (positive * (taken / np.maximum(counts, 1))).sum(axis=1)
        recalls.append(float(np.mean(found / total)))
    return np.array(recalls)


def recall_at_k(
    query_codes: BinaryCodes,
    database_codes: BinaryCodes,
    true_ids: ArrayLike,
    *,
    retrieved: int | Sequence[int],
) -> Floats:
    """Tell which share of the k true neighbours is among the first R that an exact search returns.

    The order is the library's own: by distance, then by item number.

    Parameters
    ----------
    query_codes : BinaryCodes of m queries
    database_codes : BinaryCodes of n items
    true_ids : int array of shape (m, k)
        The true neighbours, for instance `similarity.nearest(...).indices.reshape(m, k)`.
    retrieved : int or sequence of int
        The values of R; one beyond n counts as n.

    Returns
    -------
    float64 array, one entry for each R

    Examples
    --------
    >>> from asymhash.codes import BinaryCodes
    >>> from asymhash.evaluate import recall_at_k
    >>> queries, items = BinaryCodes.from_signs([[1, 1]]), BinaryCodes.from_signs([[-1, 1], [1, -1], [1, 1]])
    >>> recall_at_k(queries, items, [[1, 2]], retrieved=[1, 2, 3])
    array([0.5, 0.5, 1. ])
    """
    where = "recall_at_k"
    check_codes(query_codes, database_codes, where=where)
    truth = _checked_ids(true_ids, len(query_codes), len(database_codes), where)
    sizes = [min(size, len(database_codes)) for size in _sizes(retrieved, where)]
    found = np.zeros(len(sizes), dtype=np.int64)
    step = max(1, _BLOCK_PAIRS // len(database_codes))
    for start in range(0, len(query_codes), step):
        block = slice(start, start + step)
        distances = kernels.hamming_distances(query_codes.words[block], database_codes.words)
        for row, true in zip(distances, truth[block], strict=True):
            upto = np.bincount(row, minlength=query_codes.n_bits + 1).cumsum()
            for place, size in enumerate(sizes):
                # The last item that is retrieved: so many of its distance, by number.
                last = int(np.searchsorted(upto, size))
                rest = size - (int(upto[last - 1]) if last else 0)
                last_id = np.flatnonzero(row == last)[rest - 1]
                found[place] += np.count_nonzero(
                    (row[true] < last) | ((row[true] == last) & (true <= last_id))
                )
    return found / truth.size


def _histograms(
    query_codes: BinaryCodes | DistanceHistograms,
    database_codes: BinaryCodes | None,
    similarity: Similarity | None,
    where: str,
) -> DistanceHistograms:
    expected = "query codes, database codes and a similarity must be given, or distance histograms alone"
    if isinstance(query_codes, DistanceHistograms):
        if database_codes is not None or similarity is not None:
            raise invalid_type(where, expected, "histograms with one of the others", "Leave the others out.")
        histograms = query_codes
    elif database_codes is None or similarity is None:
        raise invalid_type(where, expected, f"a {type(query_codes).__name__} without one of the others")
    else:
        histograms = count_pairs(query_codes, database_codes, similarity, where=where)
    if not histograms.positive.any():
        raise invalid(where, "similarity must have at least one similar pair", "none")
    return histograms


def _average_precision(histograms: DistanceHistograms, rule: Rule, over: Over) -> float:
    if over == "pairs":
        pooled = histograms.all.sum(axis=0)[None], histograms.positive.sum(axis=0)[None]
        return float(_SCORES[rule](*pooled)[0])
    rows = np.flatnonzero(histograms.positive.any(axis=1))
    parts = [rows[start : start + _BLOCK_ROWS] for start in range(0, rows.size, _BLOCK_ROWS)]
    scores = [_SCORES[rule](histograms.all[part], histograms.positive[part]) for part in parts]
    return float(np.mean(np.concatenate(scores)))


def _precision(counts: Counts, positive: Counts, where_empty: float) -> Floats:
    retrieved = counts.cumsum(axis=1)
    precision: Floats = positive.cumsum(axis=1) / np.maximum(retrieved, 1)
    return np.where(retrieved > 0, precision, where_empty)


def _step(counts: Counts, positive: Counts) -> Floats:
    found = positive * _precision(counts, positive, 0.0)
    score: Floats = found.sum(axis=1) / positive.sum(axis=1)
    return score


def _anchored(counts: Counts, positive: Counts) -> Floats:
    # A radius that retrieves nothing has recall 0: with precision 1 it is the anchor again, and adds no area.
    precision = _precision(counts, positive, 1.0)
    before = np.column_stack([np.ones(len(counts)), precision[:, :-1]])
    area = positive * (precision + before) / 2
    score: Floats = area.sum(axis=1) / positive.sum(axis=1)
    return score


def _expected(counts: Counts, positive: Counts) -> Floats:
    """Return the mean of average precision over random orders inside each distance.

    Place t of n is similar with probability p/n, and then has P + 1 + (t - 1) a similar ones up to it on
    average, a = (p - 1)/(n - 1). So the distance adds p/n times the sum over t = 1..n of
    (P + 1 + (t - 1) a)/(R + t) = a + (P + 1 - a (R + 1))/(R + t), where the sum of 1/(R + t) is a difference
    of digamma functions.
    """
    n, p = counts.astype(np.float64), positive.astype(np.float64)
    R, P = n.cumsum(axis=1) - n, p.cumsum(axis=1) - p
    a = np.maximum(p - 1, 0) / np.maximum(n - 1, 1)
    harmonic = digamma(R + n + 1) - digamma(R + 1)
    share = p / np.maximum(n, 1)
    added: Floats = share * (a * n + (P + 1 - a * (R + 1)) * harmonic)
    total: Floats = added.sum(axis=1) / p.sum(axis=1)
    return total


_SCORES = {"step": _step, "anchored": _anchored, "expected": _expected}


def _sizes(retrieved: int | Sequence[int], where: str) -> list[int]:
    values = list(retrieved) if isinstance(retrieved, Sequence | np.ndarray) else [retrieved]
    if not values:
        raise invalid(where, "retrieved must be one number or more", "none")
    return [check_integer(value, where=where, name="retrieved", low=1) for value in values]


def _checked_ids(true_ids: ArrayLike, n_queries: int, n_items: int, where: str) -> NDArray[np.int64]:
    expected = f"true_ids must be integers of shape ({n_queries}, k)"
    ids = read_array(true_ids, where=where, expected=expected)
    if ids.ndim != 2 or ids.shape[0] != n_queries or ids.shape[1] == 0 or ids.dtype.kind not in "iu":
        found = f"{ids.dtype} of shape {ids.shape}"
        raise invalid(where, expected, found)
    if n_queries == 0 or ids.min() < 0 or ids.max() >= n_items:
        found = f"{ids.min()} to {ids.max()}" if ids.size else "no queries"
        raise invalid(where, f"true_ids must be from 0 to {n_items - 1}", found)
    return ids.astype(np.int64)
