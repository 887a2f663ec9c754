"""Data sets made by code: they need no file."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asymhash.checks import check_integer, random_generator

__all__ = ["nursery", "uniform"]

# Levels of the eight attributes: parents, has_nurs, form, children, housing, finance, social, health.
NURSERY_SIZES = (3, 5, 4, 4, 3, 2, 3, 3)


def uniform(
    n: int = 4000, n_features: int = 10, random_state: int | np.random.Generator | None = None
) -> NDArray[np.float64]:
    """Draw points uniformly from a cube about the origin: the paper's "10-D Uniform" by default.

    Parameters
    ----------
    n : int, default 4000
    n_features : int, default 10
    random_state : int, Generator or None
        Seed of the draw.

    Returns
    -------
    array of shape (n, n_features)
        Between -0.5 and 0.5.

    Examples
    --------
    >>> from asymhash.datasets import uniform
    >>> uniform(random_state=0).shape
    (4000, 10)
    """
    n = check_integer(n, where="uniform", name="n", low=1)
    n_features = check_integer(n_features, where="uniform", name="n_features", low=1)
    generator = random_generator(random_state, where="uniform")
    points: NDArray[np.float64] = generator.random((n, n_features))
    points -= 0.5
    return points


def nursery() -> NDArray[np.uint8]:
    """List all combinations of the eight attributes of UCI Nursery, as level numbers from 1.

    UCI Nursery is this Cartesian product, in this order (last attribute fastest).

    Returns
    -------
    array of shape (12960, 8)

    Examples
    --------
    >>> from asymhash.datasets import nursery
    >>> nursery()[[0, 1, -1]]
    array([[1, 1, 1, 1, 1, 1, 1, 1],
           [1, 1, 1, 1, 1, 1, 1, 2],
           [3, 5, 4, 4, 3, 2, 3, 3]], dtype=uint8)
    """
    levels = np.indices(NURSERY_SIZES, dtype=np.uint8).reshape(len(NURSERY_SIZES), -1).T
    return np.ascontiguousarray(levels) + np.uint8(1)
