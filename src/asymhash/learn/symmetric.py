"""The symmetric twin: the same objective with one linear map for both sides."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asymhash.learn.families import Family, SharedLinear
from asymhash.learn.hasher import ObjectiveHasher
from asymhash.learn.sides import LinearSide

__all__ = ["SymmetricLinear"]


class SymmetricLinear(ObjectiveHasher):
    """Choose this to see what asymmetry brings: one linear map for both sides, everything else as in `LinLin`.

    Parameters
    ----------
    n_bits, beta, loss, n_random_starts, n_sweeps, n_alternations, n_epochs, pca, random_state
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

    def _family(self, query_side: LinearSide, database: NDArray[np.float64]) -> Family:
        return SharedLinear(query_side, self._linear_side(database, query_side), self._n_alternations())
