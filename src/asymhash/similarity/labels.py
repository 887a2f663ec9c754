"""Similarity from labels (equal or not) and from tags (how many are shared)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from asymhash.checks import check_integer, read_array
from asymhash.errors import invalid, invalid_type
from asymhash.similarity.similarity import OriginValue, Similarity

__all__ = ["labels", "shared_labels"]

# Rows of tag counts made at once: the product of a block with all items may be dense.
_BLOCK_PAIRS = 1 << 24


def labels(y: ArrayLike, y_database: ArrayLike | None = None) -> Similarity:
    """Make items with equal labels similar; use it where every item belongs to one class.

    Parameters
    ----------
    y : array of shape (m,)
        Labels of the queries: integers, booleans or strings. Floating numbers are taken where they are integers
        small enough to have no integers between them, up to 2^53 in float64.
    y_database : array of shape (n,), optional
        Labels of the database items; by default the queries are the database.

    Returns
    -------
    Similarity of shape (m, n)

    Examples
    --------
    >>> from asymhash.similarity import labels
    >>> labels(["cat", "dog", "cat"]).to_dense()
    array([[ 1, -1,  1],
           [-1,  1, -1],
           [ 1, -1,  1]], dtype=int8)
    """
    query_labels = _checked_labels(y, "y")
    item_labels = query_labels if y_database is None else _checked_labels(y_database, "y_database")
    if (query_labels.dtype.kind in "US") != (item_labels.dtype.kind in "US"):
        expected = f"y_database must be of the kind of y, {query_labels.dtype}"
        raise invalid("labels", expected, str(item_labels.dtype))
    classes, query_classes = np.unique(query_labels, return_inverse=True)
    nearest_class = np.minimum(np.searchsorted(classes, item_labels), classes.size - 1)
    known = classes[nearest_class] == item_labels
    order = np.flatnonzero(known)
    order = order[np.argsort(nearest_class[order], kind="stable")].astype(np.int32)
    sizes = np.bincount(nearest_class[order], minlength=classes.size)
    members = np.split(order, np.cumsum(sizes)[:-1])
    indptr = np.concatenate([[0], np.cumsum(sizes[query_classes])])
    indices = np.concatenate([members[c] for c in query_classes])
    return Similarity(indptr, indices, (query_labels.size, item_labels.size), origin={"kind": "labels"})


def shared_labels(
    tags: ArrayLike | sp.sparray | sp.spmatrix,
    tags_database: ArrayLike | sp.sparray | sp.spmatrix | None = None,
    *,
    at_least: int = 1,
) -> Similarity:
    """Make items that share enough tags similar; use it where an item has many tags or keywords.

    The rule holds for an item and itself too: one that has fewer than `at_least` tags is similar to nothing.

    Parameters
    ----------
    tags : 0/1 matrix of shape (m, n_tags), dense or sparse
        Tags of the queries.
    tags_database : 0/1 matrix of shape (n, n_tags), optional
        Tags of the database items; by default the queries are the database.
    at_least : int, default 1
        How many tags a similar pair shares.

    Returns
    -------
    Similarity of shape (m, n)

    Examples
    --------
    >>> from asymhash.similarity import shared_labels
    >>> shared_labels([[1, 1, 0], [0, 1, 1], [0, 0, 1]]).to_dense()
    array([[ 1,  1, -1],
           [ 1,  1,  1],
           [-1,  1,  1]], dtype=int8)
    """
    at_least = check_integer(at_least, where="shared_labels", name="at_least", low=1)
    query_tags = _checked_tags(tags, "tags")
    item_tags = query_tags if tags_database is None else _checked_tags(tags_database, "tags_database")
    if query_tags.shape[1] != item_tags.shape[1]:
        expected = f"tags_database must have the {query_tags.shape[1]} tags of the queries"
        raise invalid("shared_labels", expected, f"{item_tags.shape[1]} tags")
    m, n = query_tags.shape[0], item_tags.shape[0]
    by_tag = item_tags.T.tocsr()
    sizes = [np.zeros(1, dtype=np.int64)]
    parts: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
    step = max(1, _BLOCK_PAIRS // max(1, n))
    for start in range(0, m, step):
        shared = (query_tags[start : start + step] @ by_tag).tocsr()
        shared.data = (shared.data >= at_least).astype(np.int32)
        shared.eliminate_zeros()
        shared.sort_indices()
        sizes.append(np.diff(shared.indptr))
        parts.append(shared.indices.astype(np.int32))
    indptr = np.cumsum(np.concatenate(sizes))
    origin: dict[str, OriginValue] = {"kind": "shared_labels", "at_least": at_least}
    return Similarity(indptr, np.concatenate(parts), (m, n), origin=origin)


def _checked_labels(values: ArrayLike, name: str) -> NDArray[Any]:
    expected = f"{name} must be 1-d, one label for each item"
    array = read_array(values, where="labels", expected=expected)
    if array.ndim != 1:
        raise invalid("labels", expected, f"{array.ndim}-d of shape {array.shape}")
    if array.size == 0:
        raise invalid("labels", f"{name} must have at least one label", "none")
    if array.dtype.kind == "O" and all(isinstance(value, str) for value in array):
        array = array.astype(np.str_)  # a pandas column of strings
    if array.dtype.kind == "O" and all(isinstance(value, (int, np.integer)) for value in array):
        array = np.array(array.tolist())
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.rint(array)).all():
        array = _integers_of_floats(array, name)
    if array.dtype.kind not in "iubUS":
        raise invalid_type("labels", f"{name} must be integers, booleans or strings", f"{array.dtype}")
    return array


def _integers_of_floats(array: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Turn whole floating numbers into integers, refusing those so large that unequal labels have become equal."""
    digits = min(np.finfo(array.dtype).nmant, 52) + 1
    largest = np.abs(array).max()
    if largest > 2.0**digits:
        expected = (
            f"{name} of {array.dtype} must be at most 2^{digits} in size, beyond which integers are rounded"
        )
        raise invalid("labels", expected, f"{largest:g}", "Give integers or strings.")
    return array.astype(np.int64)


def _checked_tags(tags: ArrayLike | sp.sparray | sp.spmatrix, name: str) -> sp.csr_array:
    expected = f"{name} must be 2-d, items by tags"
    values: Any = tags if sp.issparse(tags) else read_array(tags, where="shared_labels", expected=expected)
    if values.ndim != 2:
        raise invalid("shared_labels", expected, f"{values.ndim}-d")
    if values.dtype.kind not in "iubf":
        raise invalid_type("shared_labels", f"{name} must be a 0/1 matrix", f"{values.dtype}")
    matrix = sp.csr_array(values)
    if matrix.shape[0] == 0:
        raise invalid("shared_labels", f"{name} must have at least one item", "none")
    matrix.sum_duplicates()
    wrong = matrix.data[(matrix.data != 0) & (matrix.data != 1)]
    if wrong.size:
        raise invalid("shared_labels", f"{name} must be a 0/1 matrix", f"the value {wrong[0]}")
    counts = matrix.astype(np.int32)
    counts.eliminate_zeros()
    return counts
