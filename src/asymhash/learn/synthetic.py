"""Queries that nobody asked, where their similarity to the database is known all the same because it is a distance.

A thousand training queries are few for the linear map of 64 bits, and free database codes remember them. Where similar
means near, any vector is a training query: what is similar to it can be computed.

A new query takes each of its coordinates from one of two training queries. Of other ways to mix them (sums that keep
the covariance, with any weight) this one gave the best or nearly the best AP on all nine data sets (16 and 32 bits, two
seeds). Where coordinates are independent, as in 10-D Uniform and Nursery, it draws from the very distribution.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asymhash.learn.refine import Pool
from asymhash.preparation import Preparation
from asymhash.similarity import neighbors
from asymhash.similarity.neighbors import RULES
from asymhash.task import Task

__all__ = ["SyntheticQueries"]

# A share of the coordinates, drawn for each query, comes from the other parent. Any range from .05 to .5 does as well
# within .005 of AP.
_LEAST_SHARE, _MOST_SHARE = 0.1, 0.5
_CHECKED_QUERIES = 64
# Longer lists of similar pairs are not copied to put synthetic queries beside real ones: with 2^24 a fit takes 1.3 GiB.
_MOST_POSITIVES = 1 << 24


class SyntheticQueries(NamedTuple):
    """Draws new queries about training queries (m, d) and finds their neighbours in the database (n, d)."""

    preparation: Preparation
    parents: NDArray[Any]
    database: NDArray[Any]
    radius: float
    rule: str

    @classmethod
    def of(cls, task: Task, preparation: Preparation) -> SyntheticQueries | None:
        """Find the rule by which a task's similarity follows from its vectors; None where it does not.

        That it was made by `similarity.neighbors` is not enough: it may be of other vectors, or another scale. So the
        neighbours of some training queries are found again, and must be the same.
        """
        similarity, radius = task.similarity, task.similarity.radius
        origin = similarity.origin
        if origin.get("kind") != "neighbors" or origin.get("rule") not in RULES:
            return None
        if radius is None or not 0.0 <= radius < np.inf or similarity.n_positives > _MOST_POSITIVES:
            return None
        rule = str(origin["rule"])
        # A query that is similar to itself alone agrees with every distance.
        telling = np.flatnonzero(np.diff(similarity.indptr) > int(task.is_self))
        if not telling.size:
            return None
        places = np.linspace(0, len(telling) - 1, _CHECKED_QUERIES).astype(np.int64)
        sample = np.unique(telling[places])
        found = neighbors(task.queries[sample], task.database, radius=radius, rule=rule)
        if found != similarity.rows(sample):
            return None
        return cls(preparation, task.queries, task.database, radius, rule)

    def among(self, items: NDArray[np.int64]) -> SyntheticQueries:
        """Draw the same queries, with neighbours among some items only."""
        return self._replace(database=self.database[items])

    def __call__(self, n: int, rng: np.random.Generator) -> Pool:
        """Features of n new queries, and their similarity to the database."""
        first, second = rng.integers(0, len(self.parents), (2, n))
        share = rng.uniform(_LEAST_SHARE, _MOST_SHARE, (n, 1))
        from_second = rng.random((n, self.parents.shape[1])) < share
        vectors = np.where(from_second, self.parents[second], self.parents[first])
        similarity = neighbors(vectors, self.database, radius=self.radius, rule=self.rule)
        return Pool(self.preparation.features(vectors, np.float32), similarity)
