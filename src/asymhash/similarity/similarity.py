"""The +1/-1 matrix S between queries (rows) and database items (columns), stored as its sparse positives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from asymhash.checks import read_array
from asymhash.errors import invalid, invalid_type

__all__ = ["Ids", "OriginValue", "Similarity", "stacked"]

OriginValue: TypeAlias = str | int | float | bool | None
Ids: TypeAlias = slice | ArrayLike

_BLOCK_POSITIVES = 1 << 20  # similar pairs looked at together: some 50 MiB

# What `repr` leaves out of the origin: the kind is shown first, and these two follow from the rest.
_QUIET = ("kind", "strict")


@final
class Similarity:
    """Which database items are similar (+1) to which queries; all other pairs are dissimilar (-1).

    Use it as `y` of every method and as the truth of every metric. It is usually made by `neighbors`,
    `labels`, `shared_labels` or `from_matrix`; the constructor is for positives that are known already.

    Parameters
    ----------
    indptr : array of shape (m + 1,)
        The similar items of query i are `indices[indptr[i]:indptr[i + 1]]`.
    indices : array of shape (n_positives,)
        Numbers of similar database items, increasing within each query.
    shape : (m, n)
        Numbers of queries and of database items.
    origin : mapping of str to str, number, bool or None, optional
        How the similarity was made; kept with the model as provenance.

    Examples
    --------
    >>> from asymhash.similarity import Similarity
    >>> similarity = Similarity([0, 2, 3], [0, 2, 1], (2, 3))
    >>> similarity
    Similarity(2 queries x 3 items, 50.0% similar, given)
    >>> similarity.to_dense()
    array([[ 1, -1,  1],
           [-1,  1, -1]], dtype=int8)
    """

    __slots__ = ("_indices", "_indptr", "_origin", "_shape")

    _indptr: NDArray[np.int64]
    _indices: NDArray[np.integer[Any]]
    _shape: tuple[int, int]
    _origin: dict[str, OriginValue]

    def __init__(
        self,
        indptr: ArrayLike,
        indices: ArrayLike,
        shape: tuple[int, int],
        *,
        origin: Mapping[str, OriginValue] | None = None,
    ) -> None:
        self._shape = _checked_shape(shape)
        self._indptr = _frozen(_integers(indptr, "indptr"), np.int64)
        # int32 halves the largest array wherever the item numbers fit.
        narrow = np.int32 if self._shape[1] <= np.iinfo(np.int32).max else np.int64
        found = _integers(indices, "indices")
        _check_positives(self._indptr, found, self._shape)
        self._indices = _frozen(found, narrow)
        self._origin = _checked_origin(origin)

    @property
    def shape(self) -> tuple[int, int]:
        """(n_queries, n_items)."""
        return self._shape

    @property
    def n_queries(self) -> int:
        """Number of rows."""
        return self._shape[0]

    @property
    def n_items(self) -> int:
        """Number of columns."""
        return self._shape[1]

    @property
    def n_positives(self) -> int:
        """Number of similar pairs."""
        return int(self._indices.size)

    @property
    def share_positive(self) -> float:
        """Share of similar pairs among all pairs; 0.0 where there are no pairs."""
        pairs = self._shape[0] * self._shape[1]
        return self.n_positives / pairs if pairs else 0.0

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Where the positives of each query begin and end, read-only, shape (m + 1,)."""
        return self._indptr

    @property
    def indices(self) -> NDArray[np.integer[Any]]:
        """The positives, increasing within each query, read-only, shape (n_positives,)."""
        return self._indices

    @property
    def origin(self) -> Mapping[str, OriginValue]:
        """How the similarity was made, read-only."""
        return MappingProxyType(self._origin)

    @property
    def radius(self) -> float | None:
        """The distance that separates similar from dissimilar; None where no distance was used."""
        radius = self._origin.get("radius")
        return float(radius) if isinstance(radius, int | float) else None

    def to_dense(self) -> NDArray[np.int8]:
        """Return S as +1 and -1, shape (m, n): for small sets and for tests."""
        dense = np.full(self._shape, -1, dtype=np.int8)
        dense[np.repeat(np.arange(self._shape[0]), np.diff(self._indptr)), self._indices] = 1
        return dense

    def to_csr(self) -> sp.csr_array:
        """Return the positives as a SciPy CSR array of ones (int8), shape (m, n); it owns its arrays."""
        ones = np.ones(self._indices.size, dtype=np.int8)
        return sp.csr_array((ones, self._indices.copy(), self._indptr.copy()), shape=self._shape)

    def is_symmetric(self) -> bool:
        """Whether item j is similar to query i exactly where item i is similar to query j, as among one set of items.

        Both directions are compared by a sum of random 64-bit products over the similar pairs, in blocks: a transposed
        copy would take more memory than a fit. Similarities that differ have equal sums once in 2^60 times or so.
        """
        if self._shape[0] != self._shape[1]:
            return False
        rng = np.random.default_rng(0)
        keys, others = rng.integers(0, 2**64, (2, self._shape[0]), dtype=np.uint64)
        difference = 0
        owners = np.arange(self._shape[0])
        for first in range(0, self._indices.size, _BLOCK_POSITIVES):
            last = min(first + _BLOCK_POSITIVES, self._indices.size)
            bounds = np.clip(self._indptr, first, last)
            i, j = np.repeat(owners, bounds[1:] - bounds[:-1]), self._indices[first:last]
            difference += int((keys[i] * others[j] - keys[j] * others[i]).sum(dtype=np.uint64))
        return difference % 2**64 == 0

    def transpose(self) -> Similarity:
        """Return the similarity with queries and items exchanged, shape (n, m)."""
        return _from_scipy(self.to_csr().T.tocsr(), self._origin)

    def rows(self, ids: Ids) -> Similarity:
        """Return the chosen queries, in the order given.

        Parameters
        ----------
        ids : slice, integer array or boolean mask over queries
        """
        chosen = _chosen(ids, self._shape[0], "rows")
        sizes = np.diff(self._indptr)[chosen]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        offsets = np.arange(indptr[-1]) + np.repeat(self._indptr[:-1][chosen] - indptr[:-1], sizes)
        return Similarity(indptr, self._indices[offsets], (chosen.size, self._shape[1]), origin=self._origin)

    def columns(self, ids: Ids) -> Similarity:
        """Return the chosen database items, in the order given.

        Parameters
        ----------
        ids : slice, integer array or boolean mask over database items
        """
        chosen = _chosen(ids, self._shape[1], "columns")
        return _from_scipy(self.to_csr()[:, chosen], self._origin)

    def __eq__(self, other: object) -> bool:
        """Tell whether shape and positives are the same, however they were made."""
        if not isinstance(other, Similarity):
            return NotImplemented
        return (
            self._shape == other._shape
            and np.array_equal(self._indptr, other._indptr)
            and np.array_equal(self._indices, other._indices)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        m, n = self._shape
        words = [str(self._origin.get("kind", "given"))]
        for key, value in self._origin.items():
            follows = key == "radius" and self._origin.get("average") is not None
            if key not in _QUIET and value is not None and not follows:
                words.append(f"{key}={value:.6g}" if isinstance(value, float) else f"{key}={value}")
        return f"Similarity({m} queries x {n} items, {self.share_positive:.1%} similar, {' '.join(words)})"


def stacked(parts: Sequence[Similarity]) -> Similarity:
    """Put the queries of similarities to one database under each other; the origin is the first one's.

    Examples
    --------
    >>> stacked([Similarity([0, 1], [2], (1, 3)), Similarity([0, 2], [0, 1], (1, 3))]).to_dense()
    array([[-1, -1,  1],
           [ 1,  1, -1]], dtype=int8)
    """
    starts = np.cumsum([0, *(part.n_positives for part in parts)])
    indptr = np.concatenate(
        [[0], *(part.indptr[1:] + start for part, start in zip(parts, starts[:-1], strict=True))]
    )
    indices = np.concatenate([part.indices for part in parts])
    indices.flags.writeable = False  # so that nobody copies them again
    n_queries = sum(part.n_queries for part in parts)
    return Similarity(indptr, indices, (n_queries, parts[0].n_items), origin=parts[0].origin)


def _from_scipy(matrix: sp.csr_array, origin: Mapping[str, OriginValue]) -> Similarity:
    matrix.sort_indices()
    return Similarity(matrix.indptr, matrix.indices, matrix.shape, origin=origin)


def _frozen(array: NDArray[np.integer[Any]], dtype: type[np.int64] | type[np.int32]) -> NDArray[Any]:
    """Return a read-only copy, so that nobody who holds the argument can change a frozen value.

    What is read-only already and owns its memory is kept: 22,000 points with 30% similar have 0.5 GiB of positives.
    """
    if array.dtype == dtype and array.base is None and array.flags.c_contiguous and not array.flags.writeable:
        return array
    copy = np.array(array, dtype=dtype, order="C")
    copy.setflags(write=False)
    return copy


def _integers(values: ArrayLike, name: str) -> NDArray[np.integer[Any]]:
    expected = f"{name} must be a 1-d array of integers"
    array = read_array(values, where="Similarity", expected=expected)
    if array.size == 0 and array.ndim == 1:
        return array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        found = f"a {array.ndim}-d array of {array.dtype}"
        raise invalid("Similarity", expected, found)
    return array


def _checked_shape(shape: object) -> tuple[int, int]:
    expected = "shape must be two numbers (queries, items) of at least 0"
    if isinstance(shape, np.ndarray):
        shape = tuple(shape.tolist()) if shape.ndim == 1 else None
    if not isinstance(shape, (tuple, list)) or not all(map(_is_integer, shape)):
        raise invalid_type("Similarity", expected, repr(shape))
    if len(shape) != 2 or min(shape) < 0:
        raise invalid("Similarity", expected, repr(shape))
    return int(shape[0]), int(shape[1])


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _checked_origin(origin: Mapping[str, OriginValue] | None) -> dict[str, OriginValue]:
    if origin is None:
        return {"kind": "given"}
    if not isinstance(origin, Mapping):
        raise invalid_type("Similarity", "origin must be a mapping or None", f"a {type(origin).__name__}")
    return dict(origin)


def _check_positives(
    indptr: NDArray[np.int64], indices: NDArray[np.integer[Any]], shape: tuple[int, int]
) -> None:
    m, n = shape
    falls = int(np.count_nonzero(np.diff(indptr) < 0))
    if indptr.size != m + 1:
        expected = f"indptr must have one entry more than the {m} queries"
        raise invalid("Similarity", expected, f"{indptr.size} entries")
    if indptr[0] != 0 or indptr[-1] != indices.size or falls:
        expected = f"indptr must rise from 0 to the {indices.size} positives"
        raise invalid("Similarity", expected, f"{indptr[0]} to {indptr[-1]} with {falls} falls")
    if indices.size == 0:
        return
    low, high = int(indices.min()), int(indices.max())
    if low < 0 or high >= n:
        raise invalid("Similarity", f"indices must be from 0 to {n - 1}", f"{low} to {high}")
    rises = indices[1:] > indices[:-1]
    # The first positive of a query may be smaller than the last one of the query before.
    starts = indptr[(indptr > 0) & (indptr < indices.size)]
    rises[starts - 1] = True
    if not rises.all():
        row = int(np.searchsorted(indptr, int(np.argmin(rises)), side="right")) - 1
        expected = "indices must be increasing and without repetition within each query"
        raise invalid("Similarity", expected, f"a fall or repetition in query {row}")


def _chosen(ids: Ids, size: int, where: str) -> NDArray[np.int64]:
    """Turn a slice, integers or a mask into item numbers, by NumPy's own rules."""
    every = np.arange(size)
    if isinstance(ids, slice):
        return every[ids]
    expected = "ids must be a slice, 1-d integers or a boolean mask"
    array = read_array(ids, where=f"Similarity.{where}", expected=expected)
    if array.ndim == 1 and array.size == 0:
        return every[:0]
    if array.ndim != 1 or array.dtype.kind not in "iub":
        found = f"a {array.ndim}-d array of {array.dtype}"
        raise invalid_type(f"Similarity.{where}", expected, found)
    try:
        chosen: NDArray[np.int64] = every[array]
    except IndexError as error:
        raise invalid(f"Similarity.{where}", f"ids must fit {size} entries", str(error)) from error
    return chosen
