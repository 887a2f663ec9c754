"""ITQ: principal components, rotated so that thresholding them loses least."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from asymhash.checks import check_integer, check_vectors
from asymhash.estimator import BaseHasher, provenance_of
from asymhash.model import Model
from asymhash.preparation import Preparation
from asymhash.rotation import best_rotation
from asymhash.task import random_generator

__all__ = ["ITQ"]


class ITQ(BaseHasher):
    """Choose this when there is no similarity to learn from and the bits are fewer than the features.

    Iterative quantisation: the data's first n_bits principal components are rotated so that their signs are as near
    to their values as can be.

    Needs vectors alone; `y` is ignored. Cannot learn from labels or tags, nor give more bits than features, and its
    shorter codes are no part of the longer. Time is n_items times n_features^2 once, for the components, and n_items
    times n_bits^2 in every iteration; memory is n_items times n_bits numbers and n_features^2.

    Parameters
    ----------
    n_bits : int, default 16
        Length of the codes, 1 to the number of features.
    n_iterations : int, default 50
        Alternations between signs and rotation.
    random_state : int, Generator, RandomState or None
        Seed of the first rotation.

    Attributes
    ----------
    model_ : Model
    database_codes_ : BinaryCodes
    n_features_in_ : int

    References
    ----------
    Gong, Lazebnik: Iterative Quantization: A Procrustean Approach to Learning Binary Codes. CVPR 2011.

    Examples
    --------
    >>> import numpy as np, asymhash as ah
    >>> vectors = np.random.default_rng(0).standard_normal((50, 10))
    >>> ah.ITQ(n_bits=8, random_state=0).fit(vectors).encode_queries(vectors)
    BinaryCodes(50 items, 8 bits)
    """

    def __init__(self, n_bits: int = 16, *, n_iterations: int = 50, random_state: Any = None) -> None:
        self.n_bits = n_bits
        self.n_iterations = n_iterations
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Learn the rotation and encode the database.

        Parameters
        ----------
        X : array of shape (n_items, n_features)
            The database.
        y : ignored
            ITQ knows no similarity.

        Returns
        -------
        self
        """
        n_iterations = check_integer(self.n_iterations, where="ITQ", name="n_iterations", low=0)
        rng = random_generator(self.random_state, where="ITQ")
        self._check_n_bits()
        vectors = check_vectors(X, where="ITQ.fit", name="X", min_items=2)
        n_bits = self._check_n_bits(vectors.shape[1])
        features = self._features_of(X)
        with threadpool_limits(1, user_api="blas"):
            preparation = Preparation.learn(vectors, pca=n_bits)
            rotation = best_rotation(preparation.features(vectors), n_iterations, rng)
            linear_map = preparation.fold(rotation.T)
        model = Model(
            method="ITQ",
            n_bits=n_bits,
            query_map=linear_map,
            database_map=linear_map,
            database_codes=linear_map.encode(vectors),
            provenance=provenance_of(self),
        )
        return self._keep([model], nests=False, features=features)
