"""What Lin:V, Lin:Lin and their symmetric twin share: one descent, one sequence of models."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from asymhash.checks import check_boolean, check_integer, check_number
from asymhash.estimator import BaseHasher
from asymhash.learn.choice import Greedy, Refined, best_refined
from asymhash.learn.descent import DescentSettings, ProgressCallback, Step, grow
from asymhash.learn.families import Bit, Family
from asymhash.learn.fitting import Finish, check_settings, fit_models, step_of
from asymhash.learn.refine import FREE, OWN, Pool, Refinement, Rows
from asymhash.learn.sides import FreeSide, HalfBit, LinearSide, Side
from asymhash.learn.synthetic import SyntheticQueries
from asymhash.linear_map import LinearMap
from asymhash.objective import scaled
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

    _side: str
    """What the database side is, as `refine` names it."""
    _alternations: int
    """How often a bit's query side and database side are updated in turn when it is visited, measured for each."""

    def __init__(
        self,
        n_bits: int = 16,
        *,
        beta: float = 0.7,
        loss: str = "sqrt_logistic",
        loss_scale: float | None = None,
        n_random_starts: int = 3,
        n_sweeps: int = 1,
        n_epochs: int = 10,
        refine: bool = True,
        pca: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_bits = n_bits
        self.beta = beta
        self.loss = loss
        self.loss_scale = loss_scale
        self.n_random_starts = n_random_starts
        self.n_sweeps = n_sweeps
        self.n_epochs = n_epochs
        self.refine = refine
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
        refines = check_boolean(self.refine, where=name, name="refine")
        rng = random_generator(self.random_state, where=name)
        task = Task.check(X, y, queries, where=f"{name}.fit")
        features = self._features_of(X)
        with threadpool_limits(1, user_api="blas"):
            preparation = Preparation.learn(task.database, pca=pca, constant=_CONSTANT)
            query = LinearSide(preparation.features(task.queries), self.n_epochs)
            database = self._database_side(task, preparation, query)
            database_encoder = self._database_encoder(task, preparation, query)
            models, history = fit_models(
                self,
                self._family(query, database),
                task.similarity,
                settings=settings,
                n_bits=n_bits,
                rng=rng,
                callback=callback,
                encoders=lambda step: {
                    "query_map": folded([bit.query for bit in step.bits], preparation),
                    **database_encoder(step),
                },
                finish=self._finish(task, preparation, (query, database), settings, rng) if refines else None,
            )
        return self._keep(models, history, nests=not refines, features=features)

    @property
    def nests(self) -> bool:
        """Whether a fit with these parameters holds every shorter one: without `refine`."""
        return not self.refine

    def _or_nesting(self) -> str:
        return ", or with refine=False, whose fits hold every shorter one"

    def _database_side(self, task: Task, preparation: Preparation, query: LinearSide) -> Side:
        """Return what the database's bits may be: a linear map, the queries' own side where both are the same items."""
        return query if task.is_self else LinearSide(preparation.features(task.database), self.n_epochs)

    def _database_encoder(self, task: Task, preparation: Preparation, query: LinearSide) -> DatabaseEncoder:
        """Return what gives the parts of `Model` that encode the database."""
        return lambda step: {"database_map": folded([bit.database for bit in step.bits], preparation)}

    @abstractmethod
    def _family(self, query: LinearSide, database: Side) -> Family:
        """Say what a bit may be on both sides together."""

    def _finish(
        self,
        task: Task,
        preparation: Preparation,
        sides: tuple[LinearSide, Side],
        settings: DescentSettings,
        rng: np.random.Generator,
    ) -> Finish:
        """Return what refines all bits together."""
        query, database = sides

        def finish(step: Step) -> tuple[Step, float]:
            began = time.perf_counter()
            features = query.features.astype(np.float32)
            items = features if task.is_self else preparation.features(task.database, np.float32)
            n_bits = step.record.n_bits
            problem = Refinement(
                side=self._side,
                real=Pool(features, task.similarity),
                database=items,
                draw=SyntheticQueries.of(task, preparation),
                n_bits=n_bits,
                beta=settings.beta,
                loss=settings.loss,
                scale=settings.loss_scale(n_bits),
            )
            found = best_refined(
                problem,
                self._greedy(step),
                descend=lambda part, rng: self._descend(part, settings, rng),
                may_change_scale=self.loss_scale is None,
                rng=rng,
            )
            bits = self._bits(found, query, database)
            refined = step_of(
                bits,
                task.similarity,
                beta=settings.beta,
                loss=scaled(settings.loss, found.scale),
                total_bits=n_bits,
                seconds=step.record.seconds + time.perf_counter() - began,
                start=found.name,
            )
            return refined, found.scale

        return finish

    def _descend(self, part: Refinement, settings: DescentSettings, rng: np.random.Generator) -> Greedy:
        """Run the descent over single bits on a part of the problem."""
        query = LinearSide(part.real.features.astype(np.float64), self.n_epochs)
        if self._side == FREE:
            database: Side = FreeSide(len(part.database))
        else:
            database = LinearSide(part.database.astype(np.float64), self.n_epochs)
        steps = grow(
            self._family(query, database),
            part.real.similarity,
            settings=settings,
            n_bits=part.n_bits,
            rng=rng,
        )
        *_, last = steps
        return self._greedy(last)

    def _greedy(self, step: Step) -> Greedy:
        own = _single([bit.database for bit in step.bits]) if self._side == OWN else None
        return Greedy(
            Rows(_single([bit.query for bit in step.bits]), own), np.stack([bit.v for bit in step.bits])
        )

    def _bits(self, found: Refined, query: LinearSide, database: Side) -> list[Bit]:
        """Bits as the descent would leave them, their signs by sums in double precision."""
        bits = []
        for position, row in enumerate(found.rows.query):
            half = query.with_row(row)
            if isinstance(database, LinearSide):
                own = row if found.rows.database is None else found.rows.database[position]
                bits.append(Bit(half, half if database is query and own is row else database.with_row(own)))
            else:
                bits.append(Bit(half, HalfBit(found.codes[position])))
        return bits

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


def folded(halves: list[HalfBit], preparation: Preparation) -> LinearMap:
    """Linear map on vectors of the rows of bits."""
    return preparation.fold(_rows_of(halves))


def _single(halves: list[HalfBit]) -> NDArray[np.float32]:
    return _rows_of(halves).astype(np.float32)


def _rows_of(halves: list[HalfBit]) -> NDArray[np.float64]:
    rows = [half.row for half in halves if half.row is not None]
    assert len(rows) == len(halves)
    return np.stack(rows)
