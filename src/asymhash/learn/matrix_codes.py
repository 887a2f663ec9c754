"""Codes of a similarity matrix itself (Section 3 of the paper): no vectors, no out-of-sample queries."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from asymhash.checks import check_choice, check_integer, check_number
from asymhash.codes import MAX_BITS, BinaryCodes
from asymhash.errors import invalid, invalid_type
from asymhash.estimator import NestedModels, provenance_of
from asymhash.learn.descent import ProgressCallback, grow
from asymhash.learn.families import Family, SharedFree, TwoSides
from asymhash.learn.hasher import check_callback, codes_of
from asymhash.learn.sides import FreeSide
from asymhash.model import Model, Objective
from asymhash.objective import LOSSES
from asymhash.similarity import Similarity
from asymhash.task import check_learnable, random_generator

__all__ = ["MatrixCodes"]


class MatrixCodes(NestedModels):
    """Choose this to see how many bits a similarity needs: one free code for every row and every column.

    Parameters
    ----------
    n_bits : int, default 16
        Length of the codes, 1 to 1024.
    symmetric : bool, default False
        One code for an item as a row and as a column, as symmetric hashing has it; needs a square similarity.
    beta, loss, n_random_starts, n_sweeps, random_state
        As for `LinV`.
    n_alternations : int, default 2
        Times that a bit's rows and columns are updated in turn when it is visited.

    Attributes
    ----------
    model_ : Model
    query_codes_, database_codes_ : BinaryCodes
        Codes of rows and of columns.
    history_ : tuple of BitRecord

    Examples
    --------
    >>> import asymhash as ah
    >>> gap = ah.theory.exponential_gap(3)
    >>> codes = ah.MatrixCodes(n_bits=6, random_state=0).fit(gap.similarity)
    >>> codes.query_codes_, codes.database_codes_
    (BinaryCodes(8 items, 6 bits), BinaryCodes(8 items, 6 bits))
    """

    def __init__(
        self,
        n_bits: int = 16,
        *,
        symmetric: bool = False,
        beta: float = 0.7,
        loss: str = "sqrt_logistic",
        n_random_starts: int = 3,
        n_sweeps: int = 1,
        n_alternations: int = 2,
        random_state: Any = None,
    ) -> None:
        self.n_bits = n_bits
        self.symmetric = symmetric
        self.beta = beta
        self.loss = loss
        self.n_random_starts = n_random_starts
        self.n_sweeps = n_sweeps
        self.n_alternations = n_alternations
        self.random_state = random_state

    @property
    def query_codes_(self) -> BinaryCodes:
        """Codes of the rows."""
        check_is_fitted(self, "model_")
        codes = self.model_.query_codes
        assert codes is not None
        return codes

    def fit(self, similarity: Similarity, y: Any = None, *, callback: ProgressCallback | None = None) -> Self:
        """Fit codes to a similarity.

        Parameters
        ----------
        similarity : Similarity of shape (n_queries, n_items)
        y : ignored
        callback : callable, optional
            Called with a `BitRecord` after every bit.

        Returns
        -------
        self
        """
        n_bits = self._checked(similarity)
        check_callback(callback, where="MatrixCodes.fit")
        rng = random_generator(self.random_state, where="MatrixCodes")
        family: Family = SharedFree(similarity.n_items)
        if not self.symmetric:
            sides = FreeSide(similarity.n_queries), FreeSide(similarity.n_items)
            family = TwoSides(*sides, self.n_alternations)
        provenance = provenance_of(self, similarity)
        models, history = [], []
        with threadpool_limits(1, user_api="blas"):
            for step in grow(
                family,
                similarity,
                n_bits=n_bits,
                beta=float(self.beta),
                loss=LOSSES[self.loss],
                n_random_starts=int(self.n_random_starts),
                n_sweeps=int(self.n_sweeps),
                rng=rng,
            ):
                record = step.record
                parameters = {**provenance["parameters"], "n_bits": record.n_bits}
                models.append(
                    Model(
                        method="MatrixCodes",
                        n_bits=record.n_bits,
                        database_map_is_learned=False,
                        database_codes=codes_of([bit.database for bit in step.bits]),
                        query_codes=codes_of([bit.query for bit in step.bits]),
                        objective=Objective(self.loss, float(self.beta), record.threshold),
                        provenance={**provenance, "parameters": parameters},
                    )
                )
                history.append(record)
                if callback is not None:
                    callback(record)
        return self._keep(models, history)

    def encode_database(self, similarity: Similarity) -> BinaryCodes:
        """Give codes to new columns: those that no flip of a single bit improves.

        Parameters
        ----------
        similarity : Similarity of shape (n_queries, n_new_items)

        Returns
        -------
        BinaryCodes
        """
        check_is_fitted(self, "model_")
        _check_similarity(similarity, where="MatrixCodes.encode_database")
        return self.model_.encode_database(None, similarity)

    def _checked(self, similarity: object) -> int:
        where = "MatrixCodes"
        n_bits = check_integer(self.n_bits, where=where, name="n_bits", low=1, high=MAX_BITS)
        check_number(self.beta, where=where, name="beta", above=0.0, below=1.0)
        check_choice(self.loss, where=where, name="loss", choices=tuple(LOSSES))
        check_integer(self.n_random_starts, where=where, name="n_random_starts", low=0)
        check_integer(self.n_sweeps, where=where, name="n_sweeps", low=0)
        check_integer(self.n_alternations, where=where, name="n_alternations", low=1)
        if not isinstance(self.symmetric, bool):
            raise invalid_type(where, "symmetric must be True or False", repr(self.symmetric))
        similarity = _check_similarity(similarity, where="MatrixCodes.fit")
        check_learnable(similarity, where="MatrixCodes.fit", name="similarity")
        if self.symmetric and similarity.n_queries != similarity.n_items:
            expected = "similarity must be square for symmetric codes"
            raise invalid("MatrixCodes.fit", expected, f"{similarity.n_queries} x {similarity.n_items}")
        return n_bits


def _check_similarity(similarity: object, *, where: str) -> Similarity:
    if isinstance(similarity, Similarity):
        return similarity
    remedy = "Make one by asymhash.similarity.from_matrix(S)."
    raise invalid_type(where, "similarity must be a Similarity", f"a {type(similarity).__name__}", remedy)
