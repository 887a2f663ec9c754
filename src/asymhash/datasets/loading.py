"""`load(name)`: every data set under one name, in one form."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from asymhash.checks import check_choice, random_generator
from asymhash.datasets.files import FILES, DataFile, read_data_file
from asymhash.datasets.made import nursery, uniform
from asymhash.errors import DamagedFile, invalid_type

__all__ = ["Dataset", "load", "names"]


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Vectors and what is known about them.

    Attributes
    ----------
    name : str
    vectors : array of shape (n, d)
    labels : array of shape (n,) or None
        One class for each item.
    tags : CSR array of shape (n, n_tags) or None
        Ones where an item has a tag.
    is_test : bool array of shape (n,) or None
        The official split.
    groups : array of shape (n,) or None
        Items of one group are near copies: split by group.
    description, original : str
        What it is, and which set of the paper it stands in for.
    """

    name: str
    vectors: NDArray[Any]
    labels: NDArray[Any] | None
    tags: sp.csr_array | None
    is_test: NDArray[np.bool_] | None
    groups: NDArray[Any] | None
    description: str
    original: str


def names() -> tuple[str, ...]:
    """Return every name that `load` knows.

    Examples
    --------
    >>> from asymhash.datasets import names
    >>> names()
    ('uniform10', 'nursery', 'digits', 'mnist', 'fashion_mnist_22k', 'corel5k_gist', 'cifar10_gist_22k',
     'phototour_sift', 'debtags_minilm')
    """
    return (*_MADE, *FILES)


def load(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> Dataset:
    """Get a data set by its name; use it to try a method on the sets of the paper or their stand-ins.

    Parameters
    ----------
    name : str
        One of `names()`.
    folder : path, optional
        Where the files are; by default the folder named by the environment variable ASYMHASH_DATA. The first
        three names need no file.
    random_state : int, Generator or None, default 0
        Seed of "uniform10"; the others are what they are.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from asymhash.datasets import load
    >>> digits = load("digits")
    >>> digits.vectors.shape, digits.labels.shape
    ((1797, 64), (1797,))
    """
    if folder is not None and not isinstance(folder, (str, os.PathLike)):
        raise invalid_type("load", "folder must be a path or None", f"a {type(folder).__name__}")
    return _load(name, folder, random_generator(random_state, where="load"), FILES)


def _load(
    name: str,
    folder: str | os.PathLike[str] | None,
    random_state: int | np.random.Generator | None,
    files: Mapping[str, DataFile],
) -> Dataset:
    name = check_choice(name, where="load", name="name", choices=names())
    if name in _MADE:
        return _MADE[name](random_state)
    arrays = read_data_file(name, folder, files)
    try:
        return _from_arrays(name, arrays, files[name])
    except KeyError as error:
        found = ", ".join(sorted(arrays))
        raise DamagedFile(f"load: {name}.npz must hold the array {error}, got {found}.") from error


def _from_arrays(name: str, arrays: Mapping[str, NDArray[Any]], file: DataFile) -> Dataset:
    labels = arrays[_LABELS[name]] if name in _LABELS else None
    groups = arrays[_GROUPS[name]] if name in _GROUPS else None
    return Dataset(
        name=name,
        vectors=arrays["X"],
        labels=labels,
        tags=_TAGS[name](arrays) if name in _TAGS else None,
        is_test=arrays["is_test"] if name in _SPLIT else None,
        groups=groups,
        description=file.description,
        original=file.original,
    )


def _keyword_tags(arrays: Mapping[str, NDArray[Any]]) -> sp.csr_array:
    return sp.csr_array(arrays["Y"])


def _listed_tags(arrays: Mapping[str, NDArray[Any]]) -> sp.csr_array:
    indices, indptr = arrays["tag_indices"].astype(np.int32), arrays["tag_indptr"].astype(np.int32)
    shape = (indptr.size - 1, arrays["tag_names"].size)
    tags = sp.csr_array((np.ones(indices.size, dtype=np.uint8), indices, indptr), shape=shape)
    tags.sort_indices()
    return tags


def _uniform10(random_state: int | np.random.Generator | None) -> Dataset:
    return _unlabelled(
        "uniform10", uniform(random_state=random_state), "4,000 points, uniform in 10-D", "10-D Uniform"
    )


def _nursery(_: int | np.random.Generator | None) -> Dataset:
    description = "UCI Nursery, all 12,960 combinations of 8 attributes as level numbers"
    return _unlabelled("nursery", nursery(), description, "Nursery")


def _digits(_: int | np.random.Generator | None) -> Dataset:
    from sklearn.datasets import load_digits  # a slow import that only this set needs

    bunch = load_digits()
    description = "1,797 images of 8x8 grey pixels, ten digits (scikit-learn)"
    return Dataset(
        "digits", bunch.data, bunch.target, None, None, None, description, "none: a small image set"
    )


def _unlabelled(name: str, vectors: NDArray[Any], description: str, original: str) -> Dataset:
    return Dataset(name, vectors, None, None, None, None, description, original)


_MADE: Mapping[str, Callable[[int | np.random.Generator | None], Dataset]] = {
    "uniform10": _uniform10,
    "nursery": _nursery,
    "digits": _digits,
}
_LABELS = {
    "mnist": "y",
    "fashion_mnist_22k": "y",
    "cifar10_gist_22k": "y",
    "corel5k_gist": "folder",
    "phototour_sift": "scene",
}
_GROUPS = {"phototour_sift": "image", "debtags_minilm": "source_id"}
_TAGS: Mapping[str, Callable[[Mapping[str, NDArray[Any]]], sp.csr_array]] = {
    "corel5k_gist": _keyword_tags,
    "debtags_minilm": _listed_tags,
}
_SPLIT = ("mnist", "fashion_mnist_22k", "corel5k_gist", "cifar10_gist_22k")
