"""Euclidean distances between two sets of vectors, block by block, exact at every comparison.

The distance of a pair is *defined* as the float64 square root of the float64 sum of squared direct
differences (of vectors multiplied by `scale_of` them, where all are tiny), which no block size, thread count
or BLAS can change. A matrix product gives the squares of all distances of a block much faster, but with
rounding errors that do depend on those; so it only sorts out the pairs whose comparison is certain in spite
of the errors (`Precision.tolerance` bounds them), and the rest are computed by definition. That makes float32
products good enough wherever few pairs remain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asymhash.kernels import row_squares
from asymhash.workers import in_threads

__all__ = ["PairDistances", "Precision", "scale_of"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

_DIRECT_NUMBERS = 1 << 17  # direct differences held at once: 1 MiB, which stays in the cache
_READ_ROWS = 4096
_CENTRE_ROWS = 1 << 14  # any centre is right; the mean of so many rows makes the tolerance small enough


# Squares of differences of smaller vectors lose digits, and below 1e-162 are 0; sizes above 1e100 are refused.
_SMALLEST = 1e-100
_LARGEST_EXPONENT = 1000


def scale_of(queries: NDArray[Any], database: NDArray[Any] | None) -> float:
    """Power of two by which vectors are to be multiplied, which is exact, before their differences are squared.

    It is 1 but for vectors that are tiny all together: a tiny one among others is as good as 0, as their distances are.

    Parameters
    ----------
    queries, database : arrays of shape (n, d)

    Returns
    -------
    float

    Examples
    --------
    >>> scale_of(np.array([[1e-200, 0.5]]), None)
    1.0
    >>> scale_of(np.array([[2.0**-700, 0.0]]), None) == 2.0**699
    True
    """
    parts = [queries] if database is None else [queries, database]
    if any(part.dtype.kind != "f" or part.dtype.itemsize < 8 for part in parts):
        return 1.0  # float32 has no numbers below 1e-45
    largest = max(max(-float(part.min()), float(part.max())) for part in parts)
    if not 0.0 < largest < _SMALLEST:
        return 1.0
    return 2.0 ** min(-math.frexp(largest)[1], _LARGEST_EXPONENT)


@dataclass(frozen=True, slots=True)
class Precision:
    """The arithmetic of a product, and how far its squares can be from those of the definition."""

    dtype: type[np.float32] | type[np.float64]
    tolerance: float


class PairDistances:
    """Distances between queries and database items; database None means the queries themselves ("self case").

    Parameters
    ----------
    queries : array of shape (m, d)
    database : array of shape (n, d) or None
    block_size : int or None
        Rows and columns of a tile; never changes a result.
    """

    def __init__(
        self,
        queries: NDArray[Any],
        database: NDArray[Any] | None,
        block_size: int | None,
    ) -> None:
        self.is_self = database is None
        self.queries = queries
        self.items = queries if database is None else database
        self.n_queries: int = self.queries.shape[0]
        self.n_items: int = self.items.shape[0]
        self.block_size = block_size
        # The distance does not depend on the origin, the rounding error of the product does: centre first.
        self._centre = _centre(self.items)
        self._query_squares = self._squares(self.queries)
        self._item_squares = self._query_squares if self.is_self else self._squares(self.items)
        self.largest_square = 2 * float(self._query_squares.max() + self._item_squares.max())
        # Products of d + 2 terms, the norms, the centring and the direct form each err by at most
        # (d + 3) eps (|x|^2 + |y|^2); twice their sum leaves a margin.
        d, eps = self.queries.shape[1], float(np.finfo(np.float64).eps)
        self.double = Precision(np.float64, (4 * d + 40) * eps * self.largest_square + 1e-300)
        self.single = self._single(d)

    def _single(self, d: int) -> Precision | None:
        # With u half of eps: d + 2 terms whose sizes add up to 2 (|x|^2 + |y|^2) err by at most
        # 2 (d + 2) u (|x|^2 + |y|^2) in any order; rounding the centred vectors and the norms adds 3 u. The
        # largest square is twice the largest |x|^2 + |y|^2, and a twentieth is left for the bound itself.
        if not 1e-20 < self.largest_square < 1e30 or d > 1 << 16:
            return None  # near the ends of float32, numbers would overflow or lose digits
        return Precision(np.float32, 1.05 * (2 * d + 8) * 2.0**-24 * self.largest_square / 2)

    def direct(self, rows: NDArray[np.integer[Any]], columns: NDArray[np.integer[Any]]) -> Floats:
        """Return the distances of some pairs by definition, shape (pairs,)."""
        distances = np.empty(rows.size, dtype=np.float64)
        step = max(1, _DIRECT_NUMBERS // self.queries.shape[1])
        for start in range(0, rows.size, step):
            part = slice(start, start + step)
            difference = self.queries[rows[part]].astype(np.float64, order="C")
            difference -= self.items[columns[part]].astype(np.float64, order="C")
            difference *= difference
            distances[part] = difference.sum(axis=1)
        return np.sqrt(distances, out=distances)

    def squares(self, rows: Ids, columns: slice | Ids, precision: Precision) -> NDArray[Any]:
        """Return the squared distances of some rows and columns, each within the tolerance."""
        product: NDArray[Any] = self.query_factor(rows, precision) @ self.item_factor(columns, precision).T
        return product

    def query_factor(self, rows: Ids, precision: Precision) -> NDArray[Any]:
        """Return [-2x, |x|^2, 1] of some queries: its product with `item_factor` is |x - y|^2."""
        vectors = self._centred(self.queries[rows], precision)
        factor = self._factor(vectors, -2.0, precision)
        factor[:, -2], factor[:, -1] = self._query_squares[rows], 1.0
        return factor

    def item_factor(self, columns: slice | Ids, precision: Precision) -> NDArray[Any]:
        """Return [y, 1, |y|^2] of some items."""
        factor = self._factor(self._centred(self.items[columns], precision), 1.0, precision)
        factor[:, -2], factor[:, -1] = 1.0, self._item_squares[columns]
        return factor

    def _factor(self, vectors: NDArray[Any], scale: float, precision: Precision) -> NDArray[Any]:
        factor = np.empty((vectors.shape[0], vectors.shape[1] + 2), dtype=precision.dtype)
        np.multiply(vectors, precision.dtype(scale), out=factor[:, :-2])
        return factor

    def _centred(self, vectors: NDArray[Any], precision: Precision) -> NDArray[Any]:
        # The centre is a float32 number, so that float32 vectors minus it are rounded once only.
        if precision.dtype is np.float32 and vectors.dtype in (np.float32, np.float16, np.uint8, np.int8):
            single: NDArray[np.float32] = np.subtract(vectors, self._centre, dtype=np.float32)
            return single
        centred: Floats = np.subtract(vectors, self._centre, dtype=np.float64)
        return centred.astype(precision.dtype, copy=False)

    def _squares(self, vectors: NDArray[Any]) -> Floats:
        blocks = list(_slices(vectors.shape[0], _READ_ROWS))
        return np.concatenate(list(in_threads(lambda block: self._block_squares(vectors[block]), blocks)))

    def _block_squares(self, vectors: NDArray[Any]) -> Floats:
        return row_squares(np.subtract(vectors, self._centre, dtype=np.float64))


def _slices(size: int, step: int) -> Iterator[slice]:
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))


def _centre(vectors: NDArray[Any]) -> NDArray[Any]:
    some = vectors[:: max(1, vectors.shape[0] // _CENTRE_ROWS)]
    mean: Floats = some.mean(axis=0, dtype=np.float64)
    if np.abs(mean).max() > 1e30:
        return mean
    return mean.astype(np.float32)
