"""What Lin:V, Lin:Lin and their symmetric twin share: one descent, one sequence of models."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from asymhash.checks import check_choice, check_integer, check_number
from asymhash.codes import BinaryCodes
from asymhash.errors import invalid_type
from asymhash.estimator import BaseHasher, provenance_of
from asymhash.learn.descent import ProgressCallback, Step, grow
from asymhash.learn.families import Family
from asymhash.learn.sides import HalfBit
from asymhash.linear_map import LinearMap
from asymhash.model import Model, Objective
from asymhash.objective import LOSSES
from asymhash.preparation import Preparation
from asymhash.task import Task, random_generator

__all__ = ["ObjectiveHasher", "check_callback", "codes_of"]

# The bias enters as one more feature. At 0.3 of the root mean square length it is learned about as fast as the rest.
_CONSTANT = 0.3


class ObjectiveHasher(BaseHasher):
    """A method that minimises the paper's objective over vectors.

    The parameters are those of `LinV`; a method says what its bits may be (`_family`) and what encodes the database
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
        self._check_parameters()
        check_callback(callback, where=f"{name}.fit")
        rng = random_generator(self.random_state, where=name)
        task = Task.check(X, y, queries, where=f"{name}.fit")
        features = self._features_of(X)
        models, history = [], []
        # One thread: sums on several threads differ in their last bits, and with them a sign near zero.
        with threadpool_limits(1, user_api="blas"):
            preparation = Preparation.learn(task.database, pca=pca, constant=_CONSTANT)
            database = preparation.features(task.database)
            query_features = database if task.is_self else preparation.features(task.queries)
            family = self._family(query_features, database)
            steps = grow(
                family,
                task.similarity,
                n_bits=n_bits,
                beta=float(self.beta),
                loss=LOSSES[self.loss],
                n_random_starts=int(self.n_random_starts),
                n_sweeps=int(self.n_sweeps),
                rng=rng,
            )
            provenance = provenance_of(self, task.similarity)
            for step in steps:
                models.append(self._model(step, preparation, database, provenance))
                history.append(step.record)
                if callback is not None:
                    callback(step.record)
        return self._keep(models, history, features=features)

    @abstractmethod
    def _family(self, queries: NDArray[np.float64], database: NDArray[np.float64]) -> Family:
        """Say what the bits may be, for the features of both sides."""

    @abstractmethod
    def _database_side(
        self, step: Step, preparation: Preparation, database: NDArray[np.float64]
    ) -> dict[str, Any]:
        """Arguments of `Model` that say how the database is encoded."""

    def _n_alternations(self) -> int:
        return self._alternations if self.n_alternations is None else int(self.n_alternations)

    def _model(
        self,
        step: Step,
        preparation: Preparation,
        database: NDArray[np.float64],
        provenance: dict[str, Any],
    ) -> Model:
        n_bits = step.record.n_bits
        parameters = {**provenance["parameters"], "n_bits": n_bits}
        return Model(
            method=type(self).__name__,
            n_bits=n_bits,
            query_map=folded([bit.query for bit in step.bits], preparation),
            database_codes=codes_of([bit.database for bit in step.bits]),
            objective=Objective(self.loss, float(self.beta), step.record.threshold),
            provenance={**provenance, "parameters": parameters},
            **self._database_side(step, preparation, database),
        )

    def _check_parameters(self) -> None:
        name = type(self).__name__
        check_number(self.beta, where=name, name="beta", above=0.0, below=1.0)
        check_choice(self.loss, where=name, name="loss", choices=tuple(LOSSES))
        check_integer(self.n_random_starts, where=name, name="n_random_starts", low=0)
        check_integer(self.n_sweeps, where=name, name="n_sweeps", low=0)
        if self.n_alternations is not None:
            check_integer(self.n_alternations, where=name, name="n_alternations", low=1)
        check_integer(self.n_epochs, where=name, name="n_epochs", low=1)


def folded(halves: list[HalfBit], preparation: Preparation) -> LinearMap:
    """Linear map on vectors of the rows of bits."""
    rows = [half.row for half in halves if half.row is not None]
    assert len(rows) == len(halves)
    return preparation.fold(np.stack(rows))


def codes_of(halves: list[HalfBit]) -> BinaryCodes:
    """Codes of one side's bits."""
    return BinaryCodes.from_bools(np.stack([half.signs > 0 for half in halves], axis=1))


def check_callback(callback: object, *, where: str) -> None:
    """Refuse a callback that cannot be called, before hours of work."""
    if callback is not None and not callable(callback):
        raise invalid_type(where, "callback must be callable or None", f"a {type(callback).__name__}")
