"""Similarity from a matrix that is known already."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from asymhash.checks import read_array
from asymhash.errors import invalid, invalid_type
from asymhash.similarity.similarity import Similarity

__all__ = ["from_matrix"]


def from_matrix(S: ArrayLike | sp.sparray | sp.spmatrix) -> Similarity:
    """Take a similarity matrix as it is; use it where neither distances nor labels say what is similar.

    Parameters
    ----------
    S : matrix of shape (m, n)
        Dense: +1 (similar) and -1, or booleans. Sparse: ones or True where similar, nothing elsewhere.

    Returns
    -------
    Similarity of shape (m, n)

    Examples
    --------
    >>> import numpy as np
    >>> from asymhash.similarity import from_matrix
    >>> from_matrix(np.array([[1, -1], [-1, 1], [1, 1]]))
    Similarity(3 queries x 2 items, 66.7% similar, matrix)
    """
    if sp.issparse(S):
        return _from_sparse(S)
    expected = "S must be 2-d, queries by items"
    dense = read_array(S, where="from_matrix", expected=expected)
    if dense.ndim != 2:
        found = f"{dense.ndim}-d of shape {dense.shape}"
        raise invalid("from_matrix", expected, found)
    if dense.dtype.kind not in "iubf":
        raise invalid_type("from_matrix", "S must be +1/-1 or bool", f"{dense.dtype}")
    positive: NDArray[np.bool_] = dense if dense.dtype.kind == "b" else dense == 1
    if dense.dtype.kind != "b":
        wrong = dense[~positive & (dense != -1)]
        if wrong.size:
            remedy = "For a 0/1 matrix give S == 1."
            raise invalid("from_matrix", "S must be +1/-1 or bool", f"the value {wrong[0]}", remedy)
    indptr = np.concatenate([[0], np.cumsum(positive.sum(axis=1, dtype=np.int64))])
    return Similarity(indptr, np.nonzero(positive)[1], dense.shape, origin={"kind": "matrix"})


def _from_sparse(S: sp.sparray | sp.spmatrix) -> Similarity:
    if S.ndim != 2 or S.dtype.kind not in "iubf":
        found = f"{S.ndim}-d of {S.dtype}"
        raise invalid_type("from_matrix", "a sparse S must be 2-d with ones or True", found)
    matrix = sp.csr_array(S, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    wrong = matrix.data[matrix.data != 1]
    if wrong.size:
        expected = "a sparse S must hold ones or True where similar"
        raise invalid("from_matrix", expected, f"the value {wrong[0]}")
    matrix.sort_indices()
    return Similarity(matrix.indptr, matrix.indices, matrix.shape, origin={"kind": "matrix"})
