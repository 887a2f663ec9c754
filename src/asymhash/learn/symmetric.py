"""The symmetric twin: the same objective with one linear map for both sides."""

from __future__ import annotations

from asymhash.learn.families import Family, SharedLinear
from asymhash.learn.hasher import DatabaseEncoder, ObjectiveHasher
from asymhash.learn.sides import LinearSide
from asymhash.preparation import Preparation
from asymhash.task import Task

__all__ = ["SymmetricLinear"]


class SymmetricLinear(ObjectiveHasher):
    """Choose this to see what asymmetry brings: one linear map for both sides, everything else as in `LinLin`.

    Parameters
    ----------
    n_bits, beta, loss, loss_scale, n_random_starts, n_sweeps, n_alternations, n_epochs, pca, random_state
        As for `LinV`; None alternates three times.

    Attributes
    ----------
    model_, database_codes_, history_, n_features_in_
        As for `LinV`.

    Examples
    --------
    >>> import numpy as np, asymhash as ah
    >>> vectors = np.random.default_rng(0).standard_normal((200, 5))
    >>> hasher = ah.SymmetricLinear(n_bits=8, random_state=0).fit(vectors)
    >>> hasher.encode_queries(vectors) == hasher.database_codes_
    True
    """

    _alternations = 3

    def _database_side(
        self, task: Task, preparation: Preparation, query_side: LinearSide
    ) -> tuple[Family, DatabaseEncoder]:
        database_side, encoder = self._linear_database_side(task, preparation, query_side)
        return SharedLinear(query_side, database_side, self._n_alternations()), encoder
