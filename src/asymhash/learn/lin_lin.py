"""Lin:Lin: two linear maps, one for queries, another for the database."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asymhash.learn.descent import Step
from asymhash.learn.families import Family, TwoSides
from asymhash.learn.hasher import ObjectiveHasher, folded
from asymhash.learn.sides import LinearSide
from asymhash.preparation import Preparation

__all__ = ["LinLin"]


class LinLin(ObjectiveHasher):
    """Choose this when the database keeps growing: both sides are linear maps, each its own.

    The paper's Lin:Lin: learns W_q and W_d, so that the inner product of sign(W_q x) and sign(W_d z) tells whether
    query x and item z are similar.

    Parameters
    ----------
    n_bits, beta, loss, n_random_starts, n_sweeps, n_alternations, n_epochs, pca, random_state
        As for `LinV`; None alternates twice.

    Attributes
    ----------
    model_, database_codes_, history_, n_features_in_
        As for `LinV`.

    References
    ----------
    Neyshabur, Yadollahpour, Makarychev, Salakhutdinov, Srebro: The Power of Asymmetry in Binary Hashing. NIPS 2013.

    Examples
    --------
    >>> import numpy as np, asymhash as ah
    >>> vectors = np.random.default_rng(0).standard_normal((200, 5))
    >>> hasher = ah.LinLin(n_bits=8, random_state=0).fit(vectors)
    >>> hasher.encode_database(vectors) == hasher.database_codes_
    True
    """

    _alternations = 2

    def _family(self, queries: NDArray[np.float64], database: NDArray[np.float64]) -> Family:
        query_side = LinearSide(queries, self.n_epochs)
        database_side = query_side if database is queries else LinearSide(database, self.n_epochs)
        return TwoSides(query_side, database_side, self._n_alternations())

    def _database_side(
        self, step: Step, preparation: Preparation, database: NDArray[np.float64]
    ) -> dict[str, Any]:
        return {"database_map": folded([bit.database for bit in step.bits], preparation)}
