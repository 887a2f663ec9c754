"""The split of the paper's experiments, written once and used by everything that reproduces them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asymhash import datasets
from asymhash.checks import check_choice, check_integer, check_vectors, random_generator
from asymhash.errors import invalid
from asymhash.similarity import Similarity, neighbors
from asymhash.similarity.distances import scale_of

__all__ = ["PaperProtocol", "paper_protocol"]

_READ_ROWS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class PaperProtocol:
    """Training points that are the database, queries, and what is similar among them.

    Attributes
    ----------
    name : str
    database : float64 array of shape (n_train, d)
        Training points.
    queries : float64 array of shape (n_queries, d)
        Test points.
    train_similarity : Similarity of shape (n_train, n_train)
    test_similarity : Similarity of shape (n_queries, n_train)
    radius : float
        Distance that separates similar from dissimilar in both.
    database_ids, query_ids : int64 arrays
        Which items of the source they are.
    """

    name: str
    database: NDArray[np.float64]
    queries: NDArray[np.float64]
    train_similarity: Similarity
    test_similarity: Similarity
    radius: float
    database_ids: NDArray[np.int64]
    query_ids: NDArray[np.int64]


def paper_protocol(
    source: str | ArrayLike,
    *,
    random_state: int | np.random.Generator | None,
    rule: str = "pooled",
    average: int = 50,
    n_train: int = 1000,
    max_queries: int = 3000,
    prepare: str = "paper",
) -> PaperProtocol:
    """Split a data set as the paper's small experiments do.

    A random permutation; the first `n_train` points are training points and database, the next ones the
    queries; similar is within the distance that gives a training point `average` similar ones. The vectors
    are centred by the mean of the whole set and divided by their length, except those of "uniform10".

    Parameters
    ----------
    source : str or array of shape (n, d)
        A name of `asymhash.datasets.names()`, or vectors. "uniform10" is a fresh draw for each seed.
    random_state : int, Generator or None
        Seed of the draw and of the permutation.
    rule : {"pooled", "mean_kth"}, default "pooled"
        As in `asymhash.similarity.neighbors`: exactly `average` on average, or as the released code has it.
    average : int, default 50
    n_train : int, default 1000
    max_queries : int, default 3000
        There are as many queries as points are left, at most this many.
    prepare : {"paper", "none"}, default "paper"
        "none" takes the vectors as they are.

    Returns
    -------
    PaperProtocol

    Examples
    --------
    >>> from asymhash.evaluate import paper_protocol
    >>> split = paper_protocol("uniform10", random_state=0)
    >>> split.train_similarity
    Similarity(1000 queries x 1000 items, 5.1% similar, neighbors average=50 rule=pooled)
    >>> split.queries.shape
    (3000, 10)
    """
    where = "paper_protocol"
    prepare = check_choice(prepare, where=where, name="prepare", choices=("paper", "none"))
    n_train = check_integer(n_train, where=where, name="n_train", low=2)
    max_queries = check_integer(max_queries, where=where, name="max_queries", low=1)
    generator = random_generator(random_state, where=where)
    if isinstance(source, str):
        name, vectors = source, datasets.load(source, random_state=generator).vectors
    else:
        name, vectors = "vectors", check_vectors(source, where=where, name="source")
    if vectors.shape[0] <= n_train:
        expected = f"source must have more points than n_train={n_train}"
        raise invalid(where, expected, f"{vectors.shape[0]}", "Give a smaller n_train=.")
    order = generator.permutation(vectors.shape[0])
    database_ids, query_ids = order[:n_train], order[n_train : n_train + max_queries]
    as_it_is = prepare == "none" or name == "uniform10"
    centre = None if as_it_is else _mean(vectors)
    database, queries = _prepared(vectors[database_ids], centre), _prepared(vectors[query_ids], centre)
    train_similarity = neighbors(database, average=average, rule=rule)
    radius = train_similarity.radius
    assert radius is not None
    test_similarity = neighbors(queries, database, radius=radius, rule=rule)
    return PaperProtocol(
        name, database, queries, train_similarity, test_similarity, radius, database_ids, query_ids
    )


def _prepared(vectors: NDArray[Any], centre: NDArray[np.float64] | None) -> NDArray[np.float64]:
    result = vectors.astype(np.float64)
    if centre is not None:
        result -= centre
        result *= scale_of(result, None)  # the length does not matter, but must not underflow
        lengths = np.linalg.norm(result, axis=1, keepdims=True)
        result /= np.where(lengths > 0, lengths, 1.0)
    return result


def _mean(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean over items without a float64 copy of the whole set."""
    total = np.zeros(vectors.shape[1])
    for start in range(0, vectors.shape[0], _READ_ROWS):
        total += vectors[start : start + _READ_ROWS].sum(axis=0, dtype=np.float64)
    mean: NDArray[np.float64] = total / vectors.shape[0]
    return mean
