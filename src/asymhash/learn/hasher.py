"""What Lin:V, Lin:Lin and their symmetric twin share: one descent, one sequence of models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from asymhash.checks import check_integer, check_number
from asymhash.estimator import BaseHasher
from asymhash.learn.descent import ProgressCallback, Step
from asymhash.learn.families import Family
from asymhash.learn.fitting import check_settings, fit_models
from asymhash.learn.sides import HalfBit, LinearSide
from asymhash.linear_map import LinearMap
from asymhash.preparation import Preparation
from asymhash.task import Task, random_generator

__all__ = ["DatabaseEncoder", "ObjectiveHasher"]

DatabaseEncoder: TypeAlias = Callable[[Step], dict[str, Any]]

# The bias enters as one more feature. At 0.3 of the root mean square length it is learned about as fast as the rest.
_CONSTANT = 0.3


class ObjectiveHasher(BaseHasher):
    """A method that minimises the paper's objective over vectors.

    The parameters are those of `LinV`; a method says what its bits may be and what encodes the database
    (`_database_side`).
    """

    _alternations: int
    """What n_alternations=None means, measured for each method."""

    def __init__(
        self,
        n_bits: int = 16,
        *,
        beta: float = 0.7,
        loss: str = "sqrt_logistic",
        loss_scale: float | None = None,
        n_random_starts: int = 3,
        n_sweeps: int = 1,
        n_alternations: int | None = None,
        n_epochs: int = 10,
        pca: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_bits = n_bits
        self.beta = beta
        self.loss = loss
        self.loss_scale = loss_scale
        self.n_random_starts = n_random_starts
        self.n_sweeps = n_sweeps
        self.n_alternations = n_alternations
        self.n_epochs = n_epochs
        self.pca = pca
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: Any = None,
        *,
        queries: ArrayLike | None = None,
        callback: ProgressCallback | None = None,
    ) -> Self:
        """Learn codes.

        Parameters
        ----------
        X : array of shape (n_items, n_features)
            The database.
        y : Similarity, labels, tags or None
            Similarity of training queries (rows) and database items (columns); 1-d labels or a 2-d 0/1 matrix of tags
            of the database items; None: Euclidean neighbours, 5% of the database and at most 50 on average.
        queries : array of shape (n_queries, n_features), optional
            Training queries. Without them the database's own items are the training queries, as in the paper.
        callback : callable, optional
            Called with a `BitRecord` after every bit.

        Returns
        -------
        self
        """
        name = type(self).__name__
        n_bits, pca = self._check_n_bits(), self._check_pca()
        settings = check_settings(self, callback=callback, loss_scale=self._check_loss_scale())
        check_integer(self.n_epochs, where=name, name="n_epochs", low=1)
        rng = random_generator(self.random_state, where=name)
        task = Task.check(X, y, queries, where=f"{name}.fit")
        features = self._features_of(X)
        with threadpool_limits(1, user_api="blas"):
            preparation = Preparation.learn(task.database, pca=pca, constant=_CONSTANT)
            query_side = LinearSide(preparation.features(task.queries), self.n_epochs)
            family, database_encoder = self._database_side(task, preparation, query_side)
            models, history = fit_models(
                self,
                family,
                task.similarity,
                settings=settings,
                n_bits=n_bits,
                rng=rng,
                callback=callback,
                encoders=lambda step: {
                    "query_map": folded([bit.query for bit in step.bits], preparation),
                    **database_encoder(step),
                },
            )
        return self._keep(models, history, features=features)

    @abstractmethod
    def _database_side(
        self, task: Task, preparation: Preparation, query_side: LinearSide
    ) -> tuple[Family, DatabaseEncoder]:
        """Say what the bits may be, and which parts of `Model` encode the database after each step."""

    def _linear_database_side(
        self, task: Task, preparation: Preparation, query_side: LinearSide
    ) -> tuple[LinearSide, DatabaseEncoder]:
        """Linear map of the database, the queries' own side where both are the same items."""
        side = query_side
        if not task.is_self:
            side = LinearSide(preparation.features(task.database), self.n_epochs)
        return side, lambda step: {"database_map": folded([bit.database for bit in step.bits], preparation)}

    def _check_loss_scale(self) -> Callable[[int], float]:
        given: object = self.loss_scale
        if given is None:
            return self._default_loss_scale
        # Margins are 1 to 1024. Far outside of them a loss is straight or a step, and at 1e300 its tables are NaN.
        where = type(self).__name__
        scale = check_number(given, where=where, name="loss_scale", low=1e-3, high=1e3)
        return lambda n_bits: scale

    @staticmethod
    def _default_loss_scale(n_bits: int) -> float:
        """Return the unit of the loss where none is given: the paper's."""
        return 1.0

    def _n_alternations(self) -> int:
        return self._alternations if self.n_alternations is None else int(self.n_alternations)


def folded(halves: list[HalfBit], preparation: Preparation) -> LinearMap:
    """Linear map on vectors of the rows of bits."""
    rows = [half.row for half in halves if half.row is not None]
    assert len(rows) == len(halves)
    return preparation.fold(np.stack(rows))
