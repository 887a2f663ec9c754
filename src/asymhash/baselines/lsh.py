"""LSH: random hyperplanes through the mean of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from asymhash.checks import check_vectors
from asymhash.estimator import BaseHasher, provenance_of
from asymhash.linear_map import LinearMap
from asymhash.model import Model
from asymhash.preparation import Preparation
from asymhash.task import random_generator

__all__ = ["LSH"]


class LSH(BaseHasher):
    """Choose this as the floor of a comparison: it learns nothing but the mean.

    Every bit is the side of a hyperplane through the mean, its normal drawn from N(0, 1).

    Needs vectors alone; `y` is ignored. Cannot learn: more bits only mean that Hamming distances come nearer to angles
    at the mean. Takes one product of the vectors with n_bits directions; with `pca`, first n_items times n_features^2.

    Parameters
    ----------
    n_bits : int, default 16
        Length of the codes, 1 to 1024.
    pca : int, optional
        Draw hyperplanes in at most so many principal components.
    random_state : int, Generator, RandomState or None
        Seed.

    Attributes
    ----------
    model_ : Model
    database_codes_ : BinaryCodes
    n_features_in_ : int

    References
    ----------
    Charikar: Similarity Estimation Techniques from Rounding Algorithms. STOC 2002.

    Examples
    --------
    >>> import numpy as np, asymhash as ah
    >>> vectors = np.random.default_rng(0).standard_normal((50, 5))
    >>> ah.LSH(n_bits=8, random_state=0).fit(vectors).encode_queries(vectors)
    BinaryCodes(50 items, 8 bits)
    """

    def __init__(self, n_bits: int = 16, *, pca: int | None = None, random_state: Any = None) -> None:
        self.n_bits = n_bits
        self.pca = pca
        self.random_state = random_state

    @property
    def nests(self) -> bool:
        """Whether a fit holds every shorter one: always."""
        return True

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Draw the hyperplanes and encode the database.

        Parameters
        ----------
        X : array of shape (n_items, n_features)
            The database.
        y : ignored
            LSH knows no similarity.

        Returns
        -------
        self
        """
        n_bits, pca = self._check_n_bits(), self._check_pca()
        rng = random_generator(self.random_state, where="LSH")
        vectors = check_vectors(X, where="LSH.fit", name="X", min_items=2)
        features = self._features_of(X)
        with threadpool_limits(1, user_api="blas"):
            preparation = Preparation.learn(vectors, pca=pca)
            width = vectors.shape[1] if preparation.components is None else len(preparation.components)
            linear_map = preparation.fold(rng.standard_normal((n_bits, width)))
        model = Model(
            method="LSH",
            n_bits=n_bits,
            query_map=linear_map,
            database_map=linear_map,
            database_codes=linear_map.encode(vectors),
            provenance=provenance_of(self),
        )
        return self._keep([model], features=features)

    def _models_up_to(self, n_bits: int) -> Sequence[Model]:
        """Make the one model that is asked for: all 1024 of 784 features would take 3.4 GB."""
        linear_map, codes, provenance = self.model_.query_map, self.database_codes_, self.model_.provenance
        assert isinstance(linear_map, LinearMap)
        first = LinearMap(linear_map.weights[:n_bits], linear_map.offset[:n_bits])
        return [
            replace(
                self.model_,
                n_bits=n_bits,
                query_map=first,
                database_map=first,
                database_codes=codes.first_bits(n_bits),
                provenance={**provenance, "parameters": {**provenance["parameters"], "n_bits": n_bits}},
            )
        ]
