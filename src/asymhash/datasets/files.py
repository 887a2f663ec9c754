"""Data sets that are files in a folder: found by name, checked by sha256, never downloaded."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asymhash.errors import DamagedFile, MissingData

__all__ = ["FILES", "DataFile", "read_data_file"]

_VARIABLE = "ASYMHASH_DATA"
_READ_SIZE = 1 << 20


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of the collection: its checksum, what is in it, and what it stands in for."""

    sha256: str
    description: str
    original: str


FILES: Mapping[str, DataFile] = MappingProxyType(
    {
        "mnist": DataFile(
            "02149d40e4fbfa7a34c74c395f0068970138f677d995535978a5727d49f9cd0e",
            "MNIST, 70,000 images of 28x28 grey pixels, ten digits",
            "MNIST",
        ),
        "fashion_mnist_22k": DataFile(
            "1aeea5b524f4a33380dccfb53370ebfd2fead7050d2f181684ee76a5eb94d249",
            "Fashion-MNIST, 22,000 images of 28x28 grey pixels, ten classes",
            "none: a second image set of the size of the paper's large ones",
        ),
        "corel5k_gist": DataFile(
            "7b9cb4853fce5876efd6d394c3417ba22fcb868b7da83652ca81f64be210f9f4",
            "Corel-5k, 5,000 photographs as 512-D GIST, with 374 keywords",
            "LabelMe (distances) and Semantic 22K LabelMe (keywords)",
        ),
        "cifar10_gist_22k": DataFile(
            "fe2f1880b4abf2abe3c76af92d11a5e0a93055addd374298d5f1e7f58572f9c9",
            "CIFAR-10, 22,019 images as 512-D GIST, ten classes",
            "LabelMe-22K and Peekaboom",
        ),
        "phototour_sift": DataFile(
            "d272e1594fc44ee130b0cf442f904afe21841b46e27bcb4cf79d8bd43ecc42b4",
            "56,327 SIFT descriptors (128-D) of 23 photographs of 5 landmarks",
            "Photo-tourism patches",
        ),
        "debtags_minilm": DataFile(
            "80c554c44f0bb6c8569db051d5807111984a12f66a10d27d681b4c1477c13911",
            "22,362 descriptions of Debian packages as 384-D MiniLM embeddings, with 571 tags",
            "none: text embeddings with tags",
        ),
    }
)


def read_data_file(
    name: str, folder: str | os.PathLike[str] | None, files: Mapping[str, DataFile]
) -> dict[str, NDArray[Any]]:
    """Return the arrays of one file after checking every byte of it.

    Parameters
    ----------
    name : str
        A key of `files`; the file is `name` + ".npz".
    folder : path or None
        None means the folder named by the environment variable ASYMHASH_DATA.
    files : mapping of str to DataFile
        What the checksums are.

    Returns
    -------
    dict of str to array
    """
    path = _find(name, folder)
    found = _sha256(path)
    if found != files[name].sha256:
        raise DamagedFile(
            f"load: {path} must have sha256 {files[name].sha256}, got {found}. Replace it by a fresh copy."
        )
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}
    except (ValueError, zipfile.BadZipFile) as error:
        raise DamagedFile(f"load: {path} must be an .npz file of plain arrays, got {error}.") from error


def _find(name: str, folder: str | os.PathLike[str] | None) -> Path:
    chosen = os.environ.get(_VARIABLE, "") if folder is None else os.fspath(folder)
    remedy = f"Put {name}.npz into a folder and set {_VARIABLE} to it (or give folder=)."
    if not chosen:
        raise MissingData(
            f"load: {name!r} needs a folder of data files, got neither folder= nor {_VARIABLE}. {remedy}"
        )
    path = Path(chosen) / f"{name}.npz"
    if not path.is_file():
        raise MissingData(f"load: {name!r} must be the file {path}, got no such file. {remedy}")
    return path


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ_SIZE):
            digest.update(block)
    return digest.hexdigest()
