"""What a method is asked to learn: checked vectors of both sides and their similarity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from asymhash.checks import check_vectors, random_generator, read_array
from asymhash.errors import invalid, invalid_type
from asymhash.similarity import Similarity, labels, neighbors, shared_labels

__all__ = ["Task", "check_learnable", "random_generator"]

# Without y, a point's neighbours are this share of the database, and at most so many: 50 of 1000 as in the paper.
_DEFAULT_SHARE, _DEFAULT_NEIGHBORS = 0.05, 50


@dataclass(frozen=True, eq=False)
class Task:
    """Database and training queries, (n, d) and (m, d), and the similarity between them (m, n).

    Where the queries are the database, as in the paper, `queries` is the same array.
    """

    database: NDArray[Any]
    queries: NDArray[Any]
    similarity: Similarity

    @classmethod
    def check(cls, X: ArrayLike, y: object, queries: ArrayLike | None, *, where: str) -> Task:
        """Check the arguments of `fit`; a similarity is made from labels, tags, or distances where it is not given."""
        database = check_vectors(X, where=where, name="X", min_items=2)
        if queries is None:
            query_vectors = database
        else:
            query_vectors = check_vectors(queries, where=where, name="queries", n_features=database.shape[1])
        similarity = _similarity(y, database, None if queries is None else query_vectors, where)
        check_learnable(similarity, where=where)
        return cls(database, query_vectors, similarity)

    @property
    def is_self(self) -> bool:
        """Whether the queries are the database."""
        return self.queries is self.database


def check_learnable(similarity: Similarity, *, where: str, name: str = "y") -> None:
    """Refuse a similarity that holds nothing to learn."""
    expected = f"{name} must have similar and dissimilar pairs"
    if similarity.n_positives == 0:
        raise invalid(where, expected, "no similar pair", "Widen the radius or check the labels.")
    if similarity.n_positives == similarity.n_queries * similarity.n_items:
        raise invalid(where, expected, "only similar pairs", "Narrow the radius or check the labels.")


def _similarity(y: object, database: NDArray[Any], queries: NDArray[Any] | None, where: str) -> Similarity:
    n_queries = len(database) if queries is None else len(queries)
    if y is None:
        average = min(_DEFAULT_NEIGHBORS, max(1, round(_DEFAULT_SHARE * len(database))))
        return (
            neighbors(database, average=average)
            if queries is None
            else neighbors(queries, database, average=average)
        )
    if isinstance(y, Similarity):
        if y.shape != (n_queries, len(database)):
            expected = f"y must be a similarity of {n_queries} training queries x {len(database)} items"
            raise invalid(where, expected, f"{y.n_queries} x {y.n_items}")
        return y
    if queries is not None:
        expected = "y must be a Similarity or None where queries are given"
        remedy = "Make one by asymhash.similarity.labels(y_queries, y_database) or shared_labels."
        raise invalid_type(where, expected, f"a {type(y).__name__}", remedy)
    expected = "y must be a Similarity, labels (1-d), tags (2-d) or None"
    target: Any = y if sp.issparse(y) else read_array(y, where=where, expected=expected)
    if target.ndim not in (1, 2):
        raise invalid(where, expected, f"a {target.ndim}-d array")
    if target.shape[0] != len(database):
        expected = f"y must have one entry for each of the {len(database)} items of X"
        raise invalid(where, expected, str(target.shape[0]))
    if target.shape == (n_queries, n_queries):  # as tags, items that share a neighbour would be similar
        found = f"a {n_queries} x {n_queries} matrix, which may be a similarity or tags"
        remedy = "Say which: give similarity.from_matrix(y), or similarity.shared_labels(y) of asymhash."
        raise invalid(where, "y must be a Similarity, labels (1-d), tags (2-d) or None", found, remedy)
    return labels(target) if target.ndim == 1 else shared_labels(target)
