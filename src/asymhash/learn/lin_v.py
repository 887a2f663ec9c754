"""Lin:V: a linear map for queries, free codes for the database."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asymhash.learn.families import Family, TwoSides
from asymhash.learn.fitting import codes_of
from asymhash.learn.hasher import DatabaseEncoder, ObjectiveHasher
from asymhash.learn.refine import FREE
from asymhash.learn.sides import FreeSide, LinearSide, Side
from asymhash.linear_map import LinearMap
from asymhash.preparation import Preparation
from asymhash.task import Task

__all__ = ["LinV"]

# Ridge of the linear map that is fitted to V afterwards, as a share of the features' mean square.
_RIDGE = 1e-3
_BLOCK_ROWS = 4096


class LinV(ObjectiveHasher):
    """Choose this when the database is known: its codes are free, only queries go through a linear map.

    The paper's Lin:V: learns W_q and one code v_j for each database item, so that the inner product of
    sign(W_q x) and v_j tells whether x and item j are similar.

    Parameters
    ----------
    n_bits : int, default 16
        Length of the codes, 1 to 1024.
    beta : float, default 0.7
        Weight of similar pairs; dissimilar pairs weigh 1 - beta.
    loss : {"sqrt_logistic", "logistic", "hinge"}, default "sqrt_logistic"
        Loss of one pair. With few similar pairs the hinge wants beta near 1: at .7 it is content to call all pairs
        dissimilar.
    loss_scale : float, optional
        Unit in which the loss counts inner products. None: the paper's 1 up to 16 bits (the refinement tries
        half and, for labels, double too; `model_.objective.scale` tells), sqrt(n_bits) / 4 beyond, as
        inner products spread; there the paper's unit looks at ever fewer pairs, and free codes fit them too closely
        (decision 006).
    n_random_starts : int, default 3
        Random starts of a new bit, beside the rank-one start.
    n_sweeps : int, default 1
        Sweeps over all bits after each new bit. None costs .04 of AP at 16 bits, two gain nothing.
    n_epochs : int, default 10
        Epochs of SGD for one row of W_q.
    refine : bool, default True
        Refine all bits together after the descent over single bits, from the best of several starts: .01 to .07 more
        AP for new queries, at 2 to 20 times the time. False is the paper's optimisation, whose codes are part of one
        another (`truncate`).
    pca : int, optional
        Learn on at most so many principal components. Without refinement use it above some 100 features: the
        rank-one start of a new bit overfits there.
    random_state : int, Generator, RandomState or None
        Seed; the same seed and data give the same bytes, for any number of threads, on one instruction level
        (`asymhash info`).

    Attributes
    ----------
    model_ : Model
        What was learned; save and ship this.
    database_codes_ : BinaryCodes
        V.
    history_ : tuple of BitRecord
        Objective, threshold and time after every bit; the last is the refined code's.
    n_features_in_ : int
        Features seen by `fit`.

    Notes
    -----
    Time grows with n_bits squared and the number of pairs (below 20 bits or so with the number of items instead);
    memory is that of the vectors and the list of similar pairs. For 1000 items the refinement makes a fit 2.5 times as
    long at 64 bits, 4 times at 32 bits, and 0.4 s longer at 8 bits; for a million a few minutes longer. With
    `refine=False` codes of every length are kept, for `truncate`: up to n_bits / 2 times those of the longest.

    Where similar means near (`similarity.neighbors` of the vectors given to `fit`, or no y), the refinement makes
    training queries of its own.

    References
    ----------
    Neyshabur, Yadollahpour, Makarychev, Salakhutdinov, Srebro: The Power of Asymmetry in Binary Hashing. NIPS 2013.

    Examples
    --------
    >>> import numpy as np, asymhash as ah
    >>> vectors = np.random.default_rng(0).standard_normal((200, 5))
    >>> hasher = ah.LinV(n_bits=8, random_state=0).fit(vectors, ah.similarity.neighbors(vectors, average=10))
    >>> hasher.encode_queries(vectors[:3])
    BinaryCodes(3 items, 8 bits)
    >>> ah.LinV(n_bits=8, refine=False, random_state=0).fit(vectors).truncate(4).database_codes_
    BinaryCodes(200 items, 4 bits)
    """

    _side = FREE
    _alternations = 1

    @staticmethod
    def _default_loss_scale(n_bits: int) -> float:
        return max(1.0, math.sqrt(n_bits) / 4.0)

    def _database_side(self, task: Task, preparation: Preparation, query: LinearSide) -> Side:
        return FreeSide(len(task.database))

    def _database_encoder(self, task: Task, preparation: Preparation, query: LinearSide) -> DatabaseEncoder:
        """Keep what gives codes to items that arrive later: U, and a linear map fitted to V."""
        fitted = _FittedMap(preparation, task.database, query.features if task.is_self else None)
        return lambda step: {
            "database_map": fitted.to([bit.v for bit in step.bits]),
            "database_map_is_learned": False,
            "query_codes": codes_of([bit.query for bit in step.bits]),
        }

    def _family(self, query: LinearSide, database: Side) -> Family:
        return TwoSides(query, database, self._alternations)


class _FittedMap:
    """Least squares with a small ridge from the database's features to its codes; features are made in blocks."""

    def __init__(
        self, preparation: Preparation, vectors: NDArray[Any], features: NDArray[np.float64] | None
    ) -> None:
        self._preparation = preparation
        self._vectors = vectors
        self._features = features
        width = preparation.n_features
        squares = np.zeros((width, width))
        for _, block in self._blocks():
            squares += block.T @ block
        squares[np.diag_indices_from(squares)] += _RIDGE * np.trace(squares) / width
        self._squares = squares

    def to(self, columns: list[NDArray[np.int8]]) -> LinearMap:
        """Map whose codes are nearest to the columns of V."""
        sums = np.zeros((len(self._squares), len(columns)))
        for part, block in self._blocks():
            signs = np.stack([column[part] for column in columns], axis=1)
            sums += block.T @ signs.astype(np.float64)
        rows = np.asarray(np.linalg.solve(self._squares, sums).T, dtype=np.float64)
        return self._preparation.fold(rows)

    def _blocks(self) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        for first in range(0, len(self._vectors), _BLOCK_ROWS):
            rows = slice(first, first + _BLOCK_ROWS)
            if self._features is None:
                yield rows, self._preparation.features(self._vectors[rows])
            else:
                yield rows, self._features[rows]
