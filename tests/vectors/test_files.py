"""Vector, label and matrix files are read as they were written, or refused with a reason."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray

from asymhash.errors import DamagedFile, InvalidArgument, InvalidType
from asymhash.vectors import iter_blocks, read_labels, read_matrix, read_vectors


def write_vecs(path: Path, vectors: NDArray[Any]) -> None:
    with path.open("wb") as file:
        for row in vectors:
            file.write(np.int32(len(row)).tobytes() + row.tobytes())


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "u1", "i8", ">f4", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_is_memory_mapped_and_keeps_its_dtype(tmp_path: Path, dtype: str, order: str) -> None:
    vectors = np.array(np.arange(12).reshape(4, 3), dtype=dtype, order=order)
    np.save(tmp_path / "v.npy", vectors)
    found = read_vectors(tmp_path / "v.npy")
    assert isinstance(found, np.memmap)
    assert not found.flags.writeable
    assert found.dtype == vectors.dtype
    np.testing.assert_array_equal(found, vectors)


def test_empty_npy_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.zeros((0, 3)))
    assert read_vectors(tmp_path / "v.npy").shape == (0, 3)


@pytest.mark.parametrize(
    ("suffix", "dtype"), [("fvecs", np.float32), ("bvecs", np.uint8), ("FVECS", np.float32)]
)
def test_vecs_files_are_memory_mapped(tmp_path: Path, suffix: str, dtype: type) -> None:
    vectors = np.arange(35).reshape(5, 7).astype(dtype)
    path = tmp_path / f"v.{suffix}"
    write_vecs(path, vectors)
    found = read_vectors(path)
    assert found.dtype == dtype
    assert not found.flags.writeable
    assert isinstance(found.base, np.memmap)
    np.testing.assert_array_equal(found, vectors)


def test_every_truncation_of_vecs_is_refused_or_ends_between_records(tmp_path: Path) -> None:
    path = tmp_path / "v.bvecs"
    write_vecs(path, np.ones((3, 5), dtype=np.uint8))
    content = path.read_bytes()
    n_whole = 0
    for length in range(len(content)):
        path.write_bytes(content[:length])
        if length in (9, 18):
            n_whole += len(read_vectors(path))
            continue
        with pytest.raises(DamagedFile, match=r"v\.bvecs, which is damaged"):
            read_vectors(path)
    assert n_whole == 3


def test_vecs_records_of_different_dimension_are_named(tmp_path: Path) -> None:
    path = tmp_path / "v.bvecs"
    write_vecs(path, np.ones((4, 5), dtype=np.uint8))
    data = bytearray(path.read_bytes())
    data[2 * 9] = 6
    path.write_bytes(data)
    with pytest.raises(DamagedFile, match="record 2 has dimension 6, the first 5"):
        read_vectors(path)


@pytest.mark.parametrize("dimension", [0, -1, 2**31 - 1])
def test_vecs_with_an_impossible_dimension_are_refused(tmp_path: Path, dimension: int) -> None:
    path = tmp_path / "v.fvecs"
    path.write_bytes(np.int32(dimension).tobytes() * 8)
    with pytest.raises(
        DamagedFile, match=f"32 bytes are not a whole number of records of dimension {dimension}"
    ):
        read_vectors(path)


def test_npz_default_is_x_then_the_only_2d_array(tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    np.savez_compressed(path, X=np.zeros((2, 3)), Y=np.ones((2, 9)))
    assert read_vectors(path).shape == (2, 3)
    assert read_vectors(path, key="Y").shape == (2, 9)
    np.savez(path, embedding=np.zeros((4, 5)), y=np.arange(4), names=np.array(["a"]))
    assert read_vectors(path).shape == (4, 5)


def test_npz_with_several_candidates_lists_them(tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    np.savez(path, a=np.zeros((2, 3)), b=np.zeros((2, 4)), c=np.zeros(2))
    with pytest.raises(InvalidArgument) as caught:
        read_vectors(path, where="asymhash fit")
    assert str(caught.value) == (
        f"asymhash fit: {path} must hold an array named 'X' or exactly one 2-d array, "
        "got a (2, 3), b (2, 4), c (2,). Name the array that is meant by its key."
    )
    with pytest.raises(InvalidArgument) as caught:
        read_vectors(path, key="d")
    assert str(caught.value) == (
        f"read_vectors: {path} must hold an array named 'd', got a (2, 3), b (2, 4), c (2,)."
    )


def test_npz_without_arrays(tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "nothing here")
    with pytest.raises(InvalidArgument, match="got no arrays"):
        read_vectors(path)


def test_wrong_names_dimensions_and_dtypes(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument) as caught:
        read_vectors("vectors.csv")
    assert str(caught.value) == (
        "read_vectors: the file's name must end in .npy, .npz, .fvecs or .bvecs, got 'vectors.csv'."
    )
    path = tmp_path / "v.npy"
    np.save(path, np.zeros(3))
    with pytest.raises(InvalidArgument) as caught:
        read_vectors(path)
    assert str(caught.value) == (
        f"read_vectors: {path} must hold a 2-d array (items x features), got an array of shape (3,)."
    )
    with pytest.raises(InvalidArgument, match=r"a key may be given for a \.npz file only, got key 'X'"):
        read_vectors(path, key="X")
    np.save(path, np.zeros((3, 2), dtype=complex))
    with pytest.raises(InvalidType, match="must hold real numbers, got dtype complex128"):
        read_vectors(path)


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_pickled_objects_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"v.{suffix}"
    objects = np.array([[{"a": 1}]], dtype=object)
    if suffix == "npy":
        np.save(path, objects, allow_pickle=True)
    else:
        np.savez(path, X=objects)
    with pytest.raises(InvalidType, match="got pickled Python objects, which can run code"):
        read_vectors(path)


@pytest.mark.parametrize("suffix", ["npy", "npz"])
@pytest.mark.parametrize("content", [b"", b"plain text", b"PK\x03\x04 half an archive", b"\x93NUMPY\x01\x00"])
def test_damaged_files_are_named(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"v.{suffix}"
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=re.escape(f"expected a readable .{suffix} file, got {path}")):
        read_vectors(path)


def test_every_truncation_of_numpy_files_is_refused(tmp_path: Path) -> None:
    vectors = np.arange(6.0).reshape(2, 3)
    np.save(tmp_path / "v.npy", vectors)
    np.savez(tmp_path / "v.npz", X=vectors)
    for path in [tmp_path / "v.npy", tmp_path / "v.npz"]:
        content = path.read_bytes()
        for length in range(len(content)):
            path.write_bytes(content[:length])
            with pytest.raises(DamagedFile):
                read_vectors(path)


def test_flipped_npz_data_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    np.savez(path, X=np.full((20, 30), 7.0))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedFile, match="CRC"):
        read_vectors(path)


def test_missing_files_are_the_usual_error(tmp_path: Path) -> None:
    for name in ["v.npy", "v.npz", "v.fvecs"]:
        with pytest.raises(FileNotFoundError):
            read_vectors(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        read_matrix(tmp_path / "v.npz")


def test_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.array(["cat", "dog"]))
    assert read_labels(tmp_path / "y.npy").tolist() == ["cat", "dog"]
    np.savez(tmp_path / "y.npz", X=np.zeros((3, 2)), y=np.arange(3))
    assert read_labels(tmp_path / "y.npz").tolist() == [0, 1, 2]
    assert read_labels(tmp_path / "y.npz", key="X").shape == (3, 2)
    np.savez(tmp_path / "y.npz", labels=np.arange(3))
    assert read_labels(tmp_path / "y.npz").tolist() == [0, 1, 2]
    np.save(tmp_path / "y.npy", np.zeros((2, 2, 2)))
    with pytest.raises(
        InvalidArgument, match=r"must hold a 1-d or 2-d array, got an array of shape \(2, 2, 2\)"
    ):
        read_labels(tmp_path / "y.npy")


def test_matrices_dense_and_sparse(tmp_path: Path) -> None:
    dense = np.array([[1, 0, 0], [0, 1, 1]])
    scipy.sparse.save_npz(tmp_path / "csr.npz", scipy.sparse.csr_array(dense))
    scipy.sparse.save_npz(tmp_path / "coo.npz", scipy.sparse.coo_matrix(dense))
    np.savez(tmp_path / "dense.npz", tags=dense)
    np.save(tmp_path / "dense.npy", dense)
    for name in ["csr.npz", "coo.npz"]:
        found = read_matrix(tmp_path / name)
        assert isinstance(found, scipy.sparse.csr_array)
        np.testing.assert_array_equal(found.toarray(), dense)
    for name in ["dense.npz", "dense.npy"]:
        np.testing.assert_array_equal(read_matrix(tmp_path / name), dense)
    np.save(tmp_path / "dense.npy", dense[0])
    with pytest.raises(InvalidArgument, match="must hold a 2-d array"):
        read_matrix(tmp_path / "dense.npy")


def test_damaged_sparse_matrix_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.npz"
    np.savez(path, format=np.array(b"csr"), shape=np.array([2, 2]), data=np.ones(3))
    with pytest.raises(DamagedFile, match=r"s\.npz, which is damaged"):
        read_matrix(path)


@pytest.mark.parametrize("block_size", [1, 3, 7, 8, 100])
def test_blocks_are_the_array(block_size: int) -> None:
    array = np.arange(14).reshape(7, 2)
    blocks = list(iter_blocks(array, block_size))
    assert all(len(block) == block_size for block in blocks[:-1])
    assert len(blocks[-1]) <= block_size
    np.testing.assert_array_equal(np.concatenate(blocks), array)
