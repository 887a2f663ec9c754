"""Vector files: .npy, .npz, .fvecs and .bvecs; label and matrix files: .npy and .npz.

No reader here can run code: NumPy's pickled object arrays are refused.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from asymhash.errors import AsymhashError, DamagedFile, InvalidArgument, InvalidType, invalid

__all__ = ["read_labels", "read_matrix", "read_vectors"]

_VECTOR_SUFFIXES = (".npy", ".npz", ".fvecs", ".bvecs")
_ARRAY_SUFFIXES = (".npy", ".npz")
_READ_ERRORS = (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError)


def read_vectors(
    path: str | os.PathLike[str], *, key: str | None = None, where: str = "read_vectors"
) -> NDArray[Any]:
    """Read a vector file when its rows are items and its columns features.

    ``.npy``, ``.fvecs`` and ``.bvecs`` files are memory-mapped, so that a file larger than the memory can be
    read block by block.

    Parameters
    ----------
    path : str or path-like
        A ``.npy``, ``.npz``, ``.fvecs`` or ``.bvecs`` file.
    key : str, optional
        The array of a ``.npz`` file. By default ``"X"``, else the only 2-d array.
    where : str, default "read_vectors"
        Who asks; error messages begin with it.

    Returns
    -------
    ndarray of shape (n_items, n_features)
        The vectors in the file's own dtype, read-only where they are memory-mapped.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "vectors.npz"
    >>> np.savez(path, X=np.zeros((5, 3)), y=np.arange(5))
    >>> read_vectors(path).shape
    (5, 3)
    """
    suffix = _suffix(path, _VECTOR_SUFFIXES, key, where)
    if suffix in (".fvecs", ".bvecs"):
        vectors = _read_vecs(path, where, np.dtype("<f4") if suffix == ".fvecs" else np.dtype(np.uint8))
    else:
        vectors = _read_array(path, key=key, preferred=("X",), n_dims=(2,), where=where)
    if vectors.ndim != 2:
        raise invalid(
            where, f"{path} must hold a 2-d array (items x features)", f"an array of shape {vectors.shape}"
        )
    if vectors.dtype.kind not in "fiub":
        raise InvalidType(f"{where}: {path} must hold real numbers, got dtype {vectors.dtype}.")
    return vectors


def read_labels(
    path: str | os.PathLike[str], *, key: str | None = None, where: str = "read_labels"
) -> NDArray[Any]:
    """Read a label file when every item has one label (1-d) or a row of tags (2-d).

    Parameters
    ----------
    path : str or path-like
        A ``.npy`` or ``.npz`` file.
    key : str, optional
        The array of a ``.npz`` file. By default ``"y"``, else the only array.
    where : str, default "read_labels"
        Who asks; error messages begin with it.

    Returns
    -------
    ndarray of shape (n_items,) or (n_items, n_tags)
        The labels in the file's own dtype.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels.npy"
    >>> np.save(path, np.array(["cat", "dog", "cat"]))
    >>> read_labels(path).tolist()
    ['cat', 'dog', 'cat']
    """
    _suffix(path, _ARRAY_SUFFIXES, key, where)
    labels = _read_array(path, key=key, preferred=("y",), n_dims=(1, 2), where=where)
    if labels.ndim not in (1, 2):
        raise invalid(where, f"{path} must hold a 1-d or 2-d array", f"an array of shape {labels.shape}")
    return labels


def read_matrix(
    path: str | os.PathLike[str], *, key: str | None = None, where: str = "read_matrix"
) -> NDArray[Any] | scipy.sparse.csr_array:
    """Read a matrix of tags or of similarities when it may be sparse.

    Parameters
    ----------
    path : str or path-like
        A file of `scipy.sparse.save_npz`, or a ``.npy`` or ``.npz`` file with a 2-d array.
    key : str, optional
        The array of a ``.npz`` file that holds dense arrays. By default the only 2-d array.
    where : str, default "read_matrix"
        Who asks; error messages begin with it.

    Returns
    -------
    ndarray or scipy.sparse.csr_array of shape (n_rows, n_columns)
        The matrix, sparse where the file is.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "tags.npz"
    >>> scipy.sparse.save_npz(path, scipy.sparse.csr_array(np.eye(3)))
    >>> read_matrix(path).shape
    (3, 3)
    """
    suffix = _suffix(path, _ARRAY_SUFFIXES, key, where)
    if suffix == ".npz" and _is_sparse(path):
        try:
            return scipy.sparse.csr_array(scipy.sparse.load_npz(path))
        except _READ_ERRORS as error:
            raise _damaged(path, where, error) from None
    matrix = _read_array(path, key=key, preferred=(), n_dims=(2,), where=where)
    if matrix.ndim != 2:
        raise invalid(where, f"{path} must hold a 2-d array", f"an array of shape {matrix.shape}")
    return matrix


def _suffix(path: str | os.PathLike[str], suffixes: Sequence[str], key: str | None, where: str) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in suffixes:
        names = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"
        raise invalid(where, f"the file's name must end in {names}", repr(os.fspath(path)))
    if key is not None and suffix != ".npz":
        raise invalid(where, "a key may be given for a .npz file only", f"key {key!r} for {path}")
    return suffix


def _damaged(path: str | os.PathLike[str], where: str, error: BaseException) -> DamagedFile:
    reason = " ".join(str(error).split()).rstrip(".")
    return DamagedFile(
        f"{where}: expected a readable {Path(path).suffix} file, got {path}, which is damaged ({reason}). "
        "Restore it from a copy or make it again."
    )


def _read_array(
    path: str | os.PathLike[str],
    *,
    key: str | None,
    preferred: Sequence[str],
    n_dims: Sequence[int],
    where: str,
) -> NDArray[Any]:
    """Read the array of a .npy file or the one that is meant in a .npz file."""
    try:
        if Path(path).suffix.lower() == ".npy":
            with open(path, "rb") as file:
                _, dtype = _read_header(file)
            _refuse_objects(dtype, path, where)
            return np.lib.format.open_memmap(path, mode="r")
        with zipfile.ZipFile(path) as archive:
            headers = _headers(archive)
        name = _choose(headers, key=key, preferred=preferred, n_dims=n_dims, path=path, where=where)
        _refuse_objects(headers[name][1], path, where)
        with np.load(path, allow_pickle=False) as arrays:
            return np.asarray(arrays[name])
    except AsymhashError:
        raise
    except _READ_ERRORS as error:
        raise _damaged(path, where, error) from None


def _refuse_objects(dtype: np.dtype[Any], path: str | os.PathLike[str], where: str) -> None:
    if dtype.hasobject:
        raise InvalidType(
            f"{where}: {path} must hold plain numbers or text, got pickled Python objects, "
            "which can run code. Save it again as an array of a plain dtype."
        )


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read shape and dtype at the beginning of a .npy file."""
    is_oldest = np.lib.format.read_magic(file) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if is_oldest else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


def _headers(archive: zipfile.ZipFile) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Read shape and dtype of every array of a .npz file without reading the arrays."""
    headers = {}
    for name in archive.namelist():
        if not name.endswith(".npy"):
            continue
        with archive.open(name) as member:
            headers[name.removesuffix(".npy")] = _read_header(member)
    return headers


def _choose(
    headers: dict[str, tuple[tuple[int, ...], np.dtype[Any]]],
    *,
    key: str | None,
    preferred: Sequence[str],
    n_dims: Sequence[int],
    path: str | os.PathLike[str],
    where: str,
) -> str:
    """Choose the array of a .npz file that is meant."""
    found = ", ".join(f"{name} {shape}" for name, (shape, _) in headers.items()) or "no arrays"
    if key is not None:
        if key not in headers:
            raise InvalidArgument(f"{where}: {path} must hold an array named {key!r}, got {found}.")
        return key
    for name in preferred:
        if name in headers:
            return name
    candidates = [name for name, (shape, _) in headers.items() if len(shape) in n_dims]
    if len(candidates) == 1:
        return candidates[0]
    dims = " or ".join(f"{n}-d" for n in n_dims)
    wish = " or ".join([*(f"an array named {name!r}" for name in preferred), f"exactly one {dims} array"])
    raise invalid(where, f"{path} must hold {wish}", found, "Name the array that is meant by its key.")


def _is_sparse(path: str | os.PathLike[str]) -> bool:
    """Tell whether `scipy.sparse.save_npz` wrote the file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {"format.npy", "shape.npy", "data.npy"} <= set(archive.namelist())
    except zipfile.BadZipFile:
        return False


def _read_vecs(path: str | os.PathLike[str], where: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Map a file of records, each an int32 dimension followed by that many values."""
    size = os.stat(path).st_size
    if size < 4:
        raise _damaged(path, where, ValueError(f"it has {size} bytes, which is less than one record"))
    n_features = int(np.fromfile(path, dtype="<i4", count=1)[0])
    record_size = 4 + n_features * dtype.itemsize
    if n_features < 1 or size % record_size:
        raise _damaged(
            path,
            where,
            ValueError(f"{size} bytes are not a whole number of records of dimension {n_features}"),
        )
    records = np.memmap(path, dtype=np.uint8, mode="r", shape=(size // record_size, record_size))
    # A copy of the dimension column alone: 4 bytes a record, whatever the vectors weigh.
    dimensions = np.ascontiguousarray(records[:, :4]).view("<i4")[:, 0]
    wrong = np.flatnonzero(dimensions != n_features)
    if wrong.size:
        row = int(wrong[0])
        raise _damaged(
            path, where, ValueError(f"record {row} has dimension {dimensions[row]}, the first {n_features}")
        )
    return records[:, 4:].view(dtype)
