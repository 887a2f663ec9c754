"""Similarity from ranks: each query's exact k nearest items."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from asymhash.checks import check_integer, check_vectors
from asymhash.similarity.distances import PairDistances, scale_of
from asymhash.similarity.ranks import nearest_items
from asymhash.similarity.similarity import Similarity

__all__ = ["nearest"]


def nearest(queries: ArrayLike, database: ArrayLike, k: int, *, block_size: int | None = None) -> Similarity:
    """Make each query's k nearest items similar; use it as the truth of recall@k.

    Distances are exact, and equal ones go by the smaller item number.

    Parameters
    ----------
    queries : array of shape (m, d)
    database : array of shape (n, d)
    k : int
        From 1 to n.
    block_size : int, optional
        Queries and items compared at once; changes memory and time only.

    Returns
    -------
    Similarity of shape (m, n)
        With k positives in each row: `similarity.indices.reshape(m, k)` are the true items, by number.

    Examples
    --------
    >>> import numpy as np
    >>> from asymhash.similarity import nearest
    >>> items = np.array([[0.0], [1.0], [3.0]])
    >>> nearest(np.array([[0.4], [2.0]]), items, k=1).indices
    array([0, 1], dtype=int32)
    """
    where = "nearest"
    query_vectors = check_vectors(queries, where=where, name="queries")
    items = check_vectors(database, where=where, name="database", n_features=query_vectors.shape[1])
    k = check_integer(k, where=where, name="k", low=1, high=items.shape[0])
    if block_size is not None:
        block_size = check_integer(block_size, where=where, name="block_size", low=1)
    scale = scale_of(query_vectors, items)
    if scale != 1.0:
        query_vectors, items = query_vectors * scale, items * scale
    pairs = PairDistances(query_vectors, items, block_size)
    indices = nearest_items(pairs, k)
    indptr = np.arange(pairs.n_queries + 1, dtype=np.int64) * k
    shape = (pairs.n_queries, pairs.n_items)
    return Similarity(indptr, indices.ravel(), shape, origin={"kind": where, "k": k})
