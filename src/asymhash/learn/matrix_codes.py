"""Codes of a similarity matrix itself (Section 3 of the paper): no vectors, no out-of-sample queries."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from asymhash.checks import check_integer
from asymhash.codes import MAX_BITS, BinaryCodes
from asymhash.errors import invalid, invalid_type
from asymhash.estimator import NestedModels
from asymhash.learn.descent import ProgressCallback
from asymhash.learn.families import Family, SharedFree, TwoSides
from asymhash.learn.fitting import check_settings, codes_of, fit_models
from asymhash.learn.sides import FreeSide
from asymhash.similarity import Similarity
from asymhash.task import check_learnable, random_generator

__all__ = ["MatrixCodes"]

# Bits of rows and columns that are both free pull each other along: 1, 2 and 4 turns give AP .744, .756 and .761 at 16
# bits of 400 points with 30% similar pairs.
_ALTERNATIONS = 4


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
    n_alternations : int, optional
        Times that a bit's rows and columns are updated in turn when it is visited; None: four times.
        Symmetric codes have no turns.

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
        n_alternations: int | None = None,
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
        n_bits = check_integer(self.n_bits, where="MatrixCodes", name="n_bits", low=1, high=MAX_BITS)
        settings = check_settings(self, callback=callback)
        rng = random_generator(self.random_state, where="MatrixCodes")
        with threadpool_limits(1, user_api="blas"):
            models, history = fit_models(
                self,
                self._family(similarity),
                similarity,
                settings=settings,
                n_bits=n_bits,
                rng=rng,
                callback=callback,
                encoders=lambda step: {
                    "query_codes": codes_of([bit.query for bit in step.bits]),
                    "database_map_is_learned": False,
                },
            )
        return self._keep(models, history)

    @property
    def nests(self) -> bool:
        """Whether a fit holds every shorter one: always."""
        return True

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

    def _family(self, similarity: object) -> Family:
        if not isinstance(self.symmetric, bool):
            raise invalid_type("MatrixCodes", "symmetric must be True or False", repr(self.symmetric))
        if self.n_alternations is not None:
            check_integer(self.n_alternations, where="MatrixCodes", name="n_alternations", low=1)
        where = "MatrixCodes.fit"
        similarity = _check_similarity(similarity, where=where)
        check_learnable(similarity, where=where, name="similarity")
        if not self.symmetric:
            sides = FreeSide(similarity.n_queries), FreeSide(similarity.n_items)
            return TwoSides(
                *sides, _ALTERNATIONS if self.n_alternations is None else int(self.n_alternations)
            )
        if similarity.n_queries != similarity.n_items:
            expected = "similarity must be square for symmetric codes"
            raise invalid(where, expected, f"{similarity.n_queries} x {similarity.n_items}")
        _refuse_asymmetric(similarity, where=where)
        return SharedFree(similarity.n_items)


def _refuse_asymmetric(similarity: Similarity, *, where: str) -> None:
    """Refuse a similarity whose two halves differ: one code for both sides could only learn their mean."""
    if similarity.transpose() == similarity:
        return
    positives = similarity.to_csr()
    row, column = (int(ids[0]) for ids in (positives - positives.T).nonzero())
    signs = ("+1", "-1") if positives[row, column] else ("-1", "+1")
    found = f"S[{row}, {column}] = {signs[0]} and S[{column}, {row}] = {signs[1]}"
    remedy = "Leave symmetric out, for a code of each side."
    raise invalid(where, "similarity must be symmetric for symmetric codes", found, remedy)


def _check_similarity(similarity: object, *, where: str) -> Similarity:
    if isinstance(similarity, Similarity):
        return similarity
    remedy = "Make one by asymhash.similarity.from_matrix(S)."
    raise invalid_type(where, "similarity must be a Similarity", f"a {type(similarity).__name__}", remedy)
