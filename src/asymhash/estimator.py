"""What every method that takes vectors shares: scikit-learn's manners around one frozen model.

Arithmetic lives in functions, bookkeeping here. `fit` of each method ends in `_keep`.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from asymhash.checks import check_integer
from asymhash.codes import MAX_BITS, BinaryCodes
from asymhash.errors import UnsupportedOperation, invalid, invalid_type
from asymhash.model import Model
from asymhash.similarity import Similarity

__all__ = ["BaseHasher", "NestedModels", "provenance_of"]

_FEATURES = ("n_features_in_", "feature_names_in_")


class NestedModels(BaseEstimator):
    """A fitted `model_`, and the shorter models that the fit passed through where the method nests."""

    model_: Model
    history_: tuple[Any, ...]
    _models: tuple[Model, ...]

    def truncate(self, n_bits: int) -> Self:
        """Return the hasher of fewer bits that this fit passed through; a shorter fit gives exactly the same.

        Only where the method `nests`: `LSH`, and `LinV`, `LinLin` and `SymmetricLinear` with `refine=False`.

        Parameters
        ----------
        n_bits : int
            From 1 to the length of this fit.

        Returns
        -------
        fitted hasher
        """
        check_is_fitted(self, "model_")
        where = f"{type(self).__name__}.truncate"
        n_bits = check_integer(n_bits, where=where, name="n_bits", low=1, high=self.model_.n_bits)
        models = self._models_up_to(n_bits)
        if not models and n_bits == self.model_.n_bits:
            models = [self.model_]
        if not models:
            raise UnsupportedOperation(
                f"{where}: the shorter models of {type(self).__name__} are not part of the longer one. "
                f"Fit again with n_bits={n_bits}{self._or_nesting()}."
            )
        shorter = clone(self).set_params(n_bits=n_bits)
        features = {name: value for name, value in vars(self).items() if name in _FEATURES}
        kept = shorter._keep(models, self.history_[:n_bits], features=features)
        return kept  # type: ignore[no-any-return]

    @property
    def nests(self) -> bool:
        """Whether a fit with these parameters holds every shorter one, as `truncate` gives them out."""
        return False

    @property
    def database_codes_(self) -> BinaryCodes:
        """Codes of the database items of the training."""
        check_is_fitted(self, "model_")
        codes = self.model_.database_codes
        assert codes is not None
        return codes

    def _or_nesting(self) -> str:
        """Tell what else a user may do whose fit does not nest."""
        return ""

    def _models_up_to(self, n_bits: int) -> Sequence[Model]:
        """Models that end in the one of n_bits; none where shorter models are not part of the longer one."""
        return self._models[:n_bits]

    def _keep(
        self,
        models: Sequence[Model],
        history: Sequence[Any] = (),
        *,
        nests: bool = True,
        features: Mapping[str, Any] | None = None,
    ) -> Self:
        """Take the fitted models, shortest first; the last one is the result.

        Nothing of a fit is kept before this, so that a fit that fails or is interrupted leaves the old model whole.
        """
        for name in _FEATURES:
            self.__dict__.pop(name, None)
        self.__dict__.update(features or {})
        self.model_ = models[-1]
        self.history_ = tuple(history)
        self._models = tuple(models) if nests else ()
        return self


class BaseHasher(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NestedModels):
    """Everything of a method but its learning."""

    def encode_queries(self, X: ArrayLike) -> BinaryCodes:
        """Encode queries.

        Parameters
        ----------
        X : array of shape (n_queries, n_features)

        Returns
        -------
        BinaryCodes
        """
        return self._fitted(X, "encode_queries").encode_queries(X)

    def encode_database(self, X: ArrayLike, similarity: Similarity | None = None) -> BinaryCodes:
        """Encode items that arrive after training; `model_.database_encoding` tells by which way.

        Parameters
        ----------
        X : array of shape (n_items, n_features)
        similarity : Similarity of shape (n_training_queries, n_items), optional
            Where the method has free database codes (Lin:V): which training queries the new items are similar to.

        Returns
        -------
        BinaryCodes
        """
        return self._fitted(X, "encode_database").encode_database(X, similarity)

    def project(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the real-valued query side, whose signs are the codes of `encode_queries`.

        Parameters
        ----------
        X : array of shape (n_queries, n_features)

        Returns
        -------
        float64 array of shape (n_queries, n_bits)
        """
        return self._fitted(X, "project").project(X)

    def transform(self, X: ArrayLike) -> NDArray[np.uint8]:
        """Return the query side packed, 8 bits to a byte, lowest bit first.

        Parameters
        ----------
        X : array of shape (n_queries, n_features)

        Returns
        -------
        uint8 array of shape (n_queries, ceil(n_bits / 8))
        """
        return self.encode_queries(X).to_bytes()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # codes are bytes, whatever the vectors are
        return tags

    def _fitted(self, X: ArrayLike, call: str) -> Model:
        check_is_fitted(self, "model_")
        if hasattr(X, "columns"):  # the model checks all of X but the names of its columns
            try:
                validate_data(self, X, reset=False, skip_check_array=True)
            except ValueError as error:
                raise invalid(
                    f"{type(self).__name__}.{call}",
                    "X must have the columns that fit has seen",
                    "others",
                    " ".join(str(error).split()),
                ) from error
        return self.model_

    def _features_of(self, X: ArrayLike) -> Mapping[str, Any]:
        """Return number and names of the features of a checked X, as scikit-learn keeps them."""
        probe = BaseEstimator()
        try:
            validate_data(probe, X, reset=True, skip_check_array=True)
        except TypeError as error:
            expected = "X must have column names that are all strings or all something else"
            raise invalid_type(
                f"{type(self).__name__}.fit", expected, "both", "Rename the columns."
            ) from error
        return dict(vars(probe))

    @property
    def _n_features_out(self) -> int:
        return -(-self.model_.n_bits // 8)

    def _check_n_bits(self, n_features: int | None = None) -> int:
        """Check n_bits; `n_features` limits it for a method that cannot have more bits than features."""
        name = type(self).__name__
        n_bits: object = self.n_bits
        length = check_integer(n_bits, where=name, name="n_bits", low=1, high=MAX_BITS)
        if n_features is not None and length > n_features:
            expected = f"n_bits must be at most the number of features (n_features={n_features})"
            raise invalid(
                name, expected, str(length), "Ask for fewer bits, or use a method without this limit."
            )
        return length

    def _check_pca(self) -> int | None:
        pca: object = self.pca
        return None if pca is None else check_integer(pca, where=type(self).__name__, name="pca", low=1)


def provenance_of(estimator: BaseEstimator, similarity: Similarity | None = None) -> dict[str, Any]:
    """Tell how a model was made, in JSON values; no time stamps, so that equal fits give equal files."""
    parameters = {name: _json_value(value) for name, value in estimator.get_params().items()}
    made: dict[str, Any] = {
        "parameters": parameters,
        "versions": dict(_versions()),
    }
    if similarity is not None:
        size = {"shape": list(similarity.shape), "n_positives": similarity.n_positives}
        made["similarity"] = {**size, **similarity.origin}
    return made


def _json_value(value: Any) -> Any:
    """Write a parameter as JSON can hold it: NumPy's numbers as Python's, equal ones alike; of others the type."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (bool, int, float, str, type(None))) else repr(type(value).__name__)


@lru_cache(maxsize=1)
def _versions() -> Mapping[str, str]:
    # Reading them takes 2 ms, a hundredth of a fit of 1000 items.
    return {name: importlib.metadata.version(name) for name in ("asymhash", "numpy", "scikit-learn")}
