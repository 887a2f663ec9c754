"""Data sets: made by code, from scikit-learn, and from files that are checked."""

import hashlib
import os
import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from asymhash import datasets
from asymhash.datasets.files import FILES, DataFile, read_data_file
from asymhash.datasets.loading import _load
from asymhash.errors import DamagedFile, InvalidArgument, MissingData

needs_files = pytest.mark.skipif("ASYMHASH_DATA" not in os.environ, reason="ASYMHASH_DATA is not set")


def write(directory, name: str, arrays: dict[str, np.ndarray]) -> dict[str, DataFile]:
    """Make a small file of the same layout, and the table that knows its checksum."""
    path = directory / f"{name}.npz"
    np.savez(path, **arrays)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return {**FILES, name: replace(FILES[name], sha256=sha256)}


def small_arrays(name: str, n: int = 6) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = {"X": rng.integers(0, 255, (n, 5)).astype(np.uint8), "is_test": np.arange(n) >= 4}
    if name == "corel5k_gist":
        return arrays | {"Y": rng.integers(0, 2, (n, 3)).astype(np.uint8), "folder": np.arange(n) % 2}
    if name == "phototour_sift":
        return {"X": arrays["X"], "scene": np.arange(n) % 3, "image": np.arange(n) % 4}
    if name == "debtags_minilm":
        return {
            "X": arrays["X"].astype(np.float16),
            "tag_indices": np.array([2, 0, 1], dtype=np.uint16),
            "tag_indptr": np.array([0, 2, 2, 3, 3, 3, 3], dtype=np.int32),
            "tag_names": np.array(["a", "b", "c", "d"]),
            "source_id": np.arange(n) // 2,
        }
    return arrays | {"y": np.arange(n) % 3}


def test_names_are_those_that_load():
    assert datasets.names()[:3] == ("uniform10", "nursery", "digits")
    assert len(datasets.names()) == len(set(datasets.names())) == 9


def test_uniform_is_a_seeded_cube_about_the_origin():
    X = datasets.uniform(random_state=1)
    assert X.shape == (4000, 10)
    assert -0.5 <= X.min() < -0.499 < 0.499 < X.max() < 0.5
    assert np.array_equal(X, np.random.default_rng(1).random((4000, 10)) - 0.5)
    assert np.array_equal(datasets.load("uniform10", random_state=1).vectors, X)
    assert datasets.uniform(3, 2).shape == (3, 2)


def test_nursery_is_the_whole_product_in_order():
    X = datasets.nursery()
    assert X.shape == (12960, 8)
    assert len(np.unique(X, axis=0)) == 12960
    assert X.max(axis=0).tolist() == [3, 5, 4, 4, 3, 2, 3, 3]
    assert X.min() == 1
    assert np.array_equal(X, X[np.lexsort(X.T[::-1])])


def test_digits_come_with_labels():
    digits = datasets.load("digits")
    assert digits.vectors.shape == (1797, 64)
    assert np.unique(digits.labels).tolist() == list(range(10))


@pytest.mark.parametrize("name", sorted(FILES))
def test_files_are_read_with_what_is_known_about_the_items(tmp_path, name):
    arrays = small_arrays(name)
    data = _load(name, tmp_path, 0, write(tmp_path, name, arrays))
    assert np.array_equal(data.vectors, arrays["X"])
    assert data.vectors.dtype == arrays["X"].dtype
    assert data.description
    assert data.original
    if name == "debtags_minilm":
        assert data.tags.toarray().tolist() == [[1, 0, 1, 0], [0] * 4, [0, 1, 0, 0], *[[0] * 4] * 3]
        assert data.labels is None
        assert np.array_equal(data.groups, arrays["source_id"])
        return
    wanted = {"corel5k_gist": "folder", "phototour_sift": "scene"}.get(name, "y")
    assert np.array_equal(data.labels, arrays[wanted])
    if name == "corel5k_gist":
        assert sp.issparse(data.tags)
        assert np.array_equal(data.tags.toarray(), arrays["Y"])
    if name == "phototour_sift":
        assert np.array_equal(data.groups, arrays["image"])
        assert data.is_test is None
    else:
        assert np.array_equal(data.is_test, arrays["is_test"])


def test_the_folder_is_found_by_the_environment(tmp_path, monkeypatch):
    files = write(tmp_path, "mnist", small_arrays("mnist"))
    monkeypatch.setenv("ASYMHASH_DATA", str(tmp_path))
    assert _load("mnist", None, 0, files).vectors.shape == (6, 5)


@pytest.mark.parametrize("position", [0, 300, -1])
def test_one_flipped_bit_is_refused(tmp_path, position):
    files = write(tmp_path, "mnist", small_arrays("mnist"))
    path = tmp_path / "mnist.npz"
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    found = hashlib.sha256(content).hexdigest()
    message = (
        f"load: {path} must have sha256 {files['mnist'].sha256}, got {found}. Replace it by a fresh copy."
    )
    with pytest.raises(DamagedFile, match=f"^{re.escape(message)}$"):
        _load("mnist", tmp_path, 0, files)


def test_a_short_file_is_refused_by_the_public_loader(tmp_path):
    (tmp_path / "mnist.npz").write_bytes(b"")
    with pytest.raises(DamagedFile, match=r"^load: .*mnist\.npz must have sha256 02149d"):
        datasets.load("mnist", folder=tmp_path)


def test_a_file_without_its_arrays_is_refused(tmp_path):
    files = write(tmp_path, "mnist", {"X": np.ones((2, 2))})
    with pytest.raises(DamagedFile, match=r"^load: mnist\.npz must hold the array 'y', got X\.$"):
        _load("mnist", tmp_path, 0, files)


def test_pickled_arrays_are_not_opened(tmp_path):
    arrays = small_arrays("mnist") | {"y": np.array([{}] * 6, dtype=object)}
    files = write(tmp_path, "mnist", arrays)
    with pytest.raises(DamagedFile, match=r"^load: .*mnist\.npz must be an \.npz file of plain arrays, got "):
        read_data_file("mnist", tmp_path, files)


def test_a_missing_file_tells_in_one_line_what_to_do(tmp_path):
    path = tmp_path / "mnist.npz"
    message = (
        f"load: 'mnist' must be the file {path}, got no such file. "
        "Put mnist.npz into a folder and set ASYMHASH_DATA to it (or give folder=)."
    )
    with pytest.raises(MissingData, match=f"^{re.escape(message)}$"):
        datasets.load("mnist", folder=tmp_path)


@pytest.mark.parametrize("value", [None, ""])
def test_no_folder_tells_in_one_line_what_to_do(monkeypatch, value):
    monkeypatch.delenv("ASYMHASH_DATA", raising=False)
    if value is not None:
        monkeypatch.setenv("ASYMHASH_DATA", value)
    message = (
        "load: 'mnist' needs a folder of data files, got neither folder= nor ASYMHASH_DATA. "
        "Put mnist.npz into a folder and set ASYMHASH_DATA to it (or give folder=)."
    )
    with pytest.raises(MissingData, match=f"^{re.escape(message)}$"):
        datasets.load("mnist")


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(
        InvalidArgument, match=r"^load: name must be one of 'uniform10', .*, got 'imagenet'\.$"
    ):
        datasets.load("imagenet")


SHAPES = {
    "mnist": (70000, 784),
    "fashion_mnist_22k": (22000, 784),
    "corel5k_gist": (5000, 512),
    "cifar10_gist_22k": (22019, 512),
    "phototour_sift": (56327, 128),
    "debtags_minilm": (22362, 384),
}


@needs_files
@pytest.mark.parametrize("name", sorted(FILES))
def test_real_files_have_the_documented_shapes(name):
    data = datasets.load(name)
    assert data.vectors.shape == SHAPES[name]
    for known in (data.labels, data.is_test, data.groups):
        assert known is None or known.shape == (len(data.vectors),)
    assert data.tags is None or data.tags.shape[0] == len(data.vectors)


@needs_files
def test_nursery_by_code_is_the_file():
    with np.load(os.path.join(os.environ["ASYMHASH_DATA"], "nursery.npz"), allow_pickle=False) as arrays:
        assert np.array_equal(arrays["X"], datasets.nursery())
