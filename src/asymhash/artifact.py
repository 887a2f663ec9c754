"""Named arrays and metadata in one checked file.

The file is a safetensors file, so any safetensors reader opens it and nothing in it can run code. Its header
carries one metadata entry of ours: JSON text that begins with the xxh3_128 digest of the header itself and
holds one digest for every array. This envelope is fixed for all versions, so that a reader can tell a damaged
file from a newer one.

Layout: 8 bytes little-endian header length, the header, the arrays one after the other up to the last byte.
The header digest is taken over the length bytes and the header, with zeros where its own 32 characters stand.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import safetensors.numpy
import xxhash
from numpy.typing import NDArray

from asymhash.errors import DamagedFile, InvalidArgument, InvalidType, UnsupportedVersion, invalid

__all__ = [
    "FORMAT_VERSION",
    "load_artifact",
    "open_atomically",
    "refuse_special_file",
    "save_artifact",
]

FORMAT_VERSION = 1

_MARKER = b'{"__metadata__":{"asymhash":"'
_DIGEST_KEY = b'{\\"header_xxh3_128\\":\\"'
_NO_DIGEST = "0" * 32
_MAX_HEADER_SIZE = 100_000_000  # the limit of safetensors itself
_DTYPES = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
_RESTORE = "Restore it from a copy or make it again."
_SPECIAL_FILES = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


@contextmanager
def open_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing when a reader must find either the old file or the whole new one.

    The bytes go to a temporary file in the same folder, which takes the place of `path` only after everything
    has reached the disk. Whatever interrupts the block leaves the old file and no temporary one.

    Parameters
    ----------
    path : str or path-like
        The file to write, a regular one or a new one; a symbolic link is followed, not replaced.

    Yields
    ------
    BinaryIO
        The file to write to.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with open_atomically(folder / "codes.bin") as file:
    ...     _ = file.write(b"abc")
    >>> (folder / "codes.bin").read_bytes()
    b'abc'
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path}: expected a file to write, got a folder. Name a file inside it.")
    refuse_special_file(path, where=os.fspath(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    # os.open rather than tempfile: the new file gets the permissions of the user's umask, not 0600.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def refuse_special_file(path: str | os.PathLike[str], *, where: str) -> None:
    """Refuse to replace a device, a named pipe or a socket, or what a link to one leads to.

    Taking its place would leave the machine without it: root may replace even /dev/null by a file.

    Parameters
    ----------
    path : str or path-like
        Where a file is to be written.
    where : str
        Who asks; the error begins with it.

    Examples
    --------
    >>> import tempfile
    >>> pipe = Path(tempfile.mkdtemp()) / "pipe"
    >>> refuse_special_file(pipe, where="save")
    >>> os.mkfifo(pipe)
    >>> refuse_special_file(pipe, where="save")
    Traceback (most recent call last):
        ...
    asymhash.errors.InvalidArgument: save: expected a regular file or a new one, got ...pipe, which is a named pipe...
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    for is_special, kind in _SPECIAL_FILES:
        if is_special(mode):
            found = f"{os.fspath(path)}, which is {kind}"
            raise invalid(where, "expected a regular file or a new one", found, "Choose another name.")


def _sync_folder(folder: Path) -> None:
    """Make a rename durable: without this a power cut may undo it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def save_artifact(
    path: str | os.PathLike[str],
    *,
    kind: str,
    arrays: Mapping[str, NDArray[Any]],
    metadata: Mapping[str, Any],
) -> None:
    """Write named arrays and JSON metadata as one checked file that replaces the old one whole or not at all.

    Parameters
    ----------
    path : str or path-like
        The file to write.
    kind : str
        What the file holds, for example ``"model"``; `load_artifact` asks for the same word.
    arrays : mapping of str to ndarray
        Any shapes; bool, integer and floating dtypes.
    metadata : mapping of str to JSON values
        None, bool, int, finite float, str, and lists and dicts of these.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "model.ahm"
    >>> save_artifact(path, kind="model", arrays={"W": np.eye(2)}, metadata={"n_bits": 2})
    >>> arrays, metadata = load_artifact(path, kind="model")
    >>> arrays["W"].shape, metadata
    ((2, 2), {'n_bits': 2})
    """
    tensors = {name: _storable(name, array) for name, array in arrays.items()}
    content = {
        "header_xxh3_128": _NO_DIGEST,
        "format": "asymhash",
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "arrays": {name: _digest(tensors[name]) for name in sorted(tensors)},
        "metadata": _json_copy(metadata),
    }
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    data = safetensors.numpy.save(tensors, {"asymhash": text})
    header_end = 8 + int.from_bytes(data[:8], "little")
    header = _with_digest(data[:header_end])
    with open_atomically(path) as file:
        file.write(header)
        file.write(memoryview(data)[header_end:])


def load_artifact(
    path: str | os.PathLike[str], *, kind: str
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read a file of `save_artifact`, refusing by name one that is damaged, newer or of another kind.

    Every byte is covered by a digest, and all sizes are compared with the file's real length before anything
    is allocated.

    Parameters
    ----------
    path : str or path-like
        The file to read.
    kind : str
        What the file must hold.

    Returns
    -------
    arrays : dict of str to ndarray
        The arrays, with their shapes and dtypes.
    metadata : dict
        The metadata.

    Examples
    --------
    >>> load_artifact(__file__, kind="model")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    asymhash.errors.InvalidArgument: ...artifact.py: expected a file written by asymhash, got something else.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = _read_start(file, path, size)
        layout, content = _parse_header(start, path)
        _check_identity(content, path, kind)
        _check_layout(layout, path, size - len(start))
        arrays = {
            name: _read_array(file, path, name, layout[name], content["arrays"].get(name))
            for name in sorted(layout, key=lambda name: layout[name]["data_offsets"])
        }
    return arrays, content["metadata"]


def _storable(name: str, array: NDArray[Any]) -> NDArray[Any]:
    array = np.asarray(array)
    if array.dtype.newbyteorder("<") not in _DTYPES.values():
        raise InvalidType(
            f"save_artifact: array {name!r} must have a bool, integer or floating dtype of at most 64 bits, "
            f"got {array.dtype}."
        )
    # not ascontiguousarray, which makes a 0-d array 1-d
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def _digest(array: NDArray[Any]) -> str:
    return xxhash.xxh3_128_hexdigest(array.reshape(-1).view(np.uint8).data)


def _json_copy(metadata: Mapping[str, Any]) -> Any:
    try:
        return json.loads(json.dumps(dict(metadata), sort_keys=True, allow_nan=False))
    except ValueError as error:
        raise InvalidArgument(
            f"save_artifact: metadata must be JSON values, got a value that is not: {error}."
        ) from None
    except TypeError as error:
        raise InvalidType(
            f"save_artifact: metadata must be JSON values, got a value that is not: {error}."
        ) from None


def _with_digest(header: bytes) -> bytes:
    """Put the digest in place of the zeros."""
    position = header.index(_DIGEST_KEY) + len(_DIGEST_KEY)
    digest = xxhash.xxh3_128_hexdigest(header).encode()
    return header[:position] + digest + header[position + len(digest) :]


def _read_start(file: BinaryIO, path: str | os.PathLike[str], size: int) -> bytes:
    """Read the length bytes and the header and verify them against the header's own digest."""
    if size < 8 + len(_MARKER) + len(_DIGEST_KEY) + len(_NO_DIGEST):
        raise DamagedFile(f"{path}: expected a file written by asymhash, got only {size} bytes. {_RESTORE}")
    length_bytes = file.read(8)
    length = int.from_bytes(length_bytes, "little")
    begin = file.read(len(_MARKER) + len(_DIGEST_KEY))
    # Either half alone is enough, so that one flipped byte does not make our file somebody else's.
    if _MARKER not in begin and _DIGEST_KEY not in begin:
        raise InvalidArgument(f"{path}: expected a file written by asymhash, got something else.")
    if not len(begin) <= length <= min(size - 8, _MAX_HEADER_SIZE):
        _refuse_damaged(path, "header", f"it declares {length} bytes, {size - 8} are there")
    start = length_bytes + begin + file.read(length - len(begin))
    position = start.find(_DIGEST_KEY) + len(_DIGEST_KEY)
    digest = start[position : position + len(_NO_DIGEST)]
    blank = start[:position] + _NO_DIGEST.encode() + start[position + len(_NO_DIGEST) :]
    if xxhash.xxh3_128_hexdigest(blank).encode() != digest:
        _refuse_damaged(path, "header", "its checksum does not match")
    return start


def _parse_header(start: bytes, path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        layout = json.loads(start[8:])
        content = json.loads(layout.pop("__metadata__")["asymhash"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        _refuse_damaged(path, "header", "it is not the JSON that was expected")
    if not isinstance(content, dict):
        _refuse_damaged(path, "header", "it is not the JSON that was expected")
    return layout, content


def _check_identity(content: dict[str, Any], path: str | os.PathLike[str], kind: str) -> None:
    version = content.get("format_version")
    if content.get("format") != "asymhash" or not isinstance(version, int):
        _refuse_damaged(path, "header", "it names no format")
    if version > FORMAT_VERSION:
        raise UnsupportedVersion(
            f"{path}: expected format version {FORMAT_VERSION} or older, got {version}. "
            "Update asymhash to read it."
        )
    if content.get("kind") != kind:
        raise InvalidArgument(f"{path}: expected a file of kind {kind!r}, got kind {content.get('kind')!r}.")
    if not isinstance(content.get("arrays"), dict) or not isinstance(content.get("metadata"), dict):
        _refuse_damaged(path, "header", "it lists no arrays or no metadata")


def _check_layout(layout: dict[str, Any], path: str | os.PathLike[str], data_size: int) -> None:
    """Refuse arrays that do not fill the rest of the file exactly, each with the size of its shape."""
    expected_begin = 0
    try:
        entries = sorted(layout.items(), key=lambda item: tuple(item[1]["data_offsets"]))
        for name, entry in entries:
            begin, end = entry["data_offsets"]
            shape = entry["shape"]
            if not all(type(number) is int and number >= 0 for number in [begin, end, *shape]):
                _refuse_damaged(path, f"array {name!r}", "its size is not a whole number")
            if begin != expected_begin or end - begin != math.prod(shape) * _DTYPES[entry["dtype"]].itemsize:
                _refuse_damaged(path, f"array {name!r}", "its declared size does not fit its place")
            expected_begin = end
    except (TypeError, KeyError, ValueError):
        _refuse_damaged(path, "header", "it describes no arrays")
    if expected_begin != data_size:
        _refuse_damaged(path, "data", f"{expected_begin} bytes were written, {data_size} are there")


def _read_array(
    file: BufferedReader, path: str | os.PathLike[str], name: str, entry: dict[str, Any], digest: object
) -> NDArray[Any]:
    begin, end = entry["data_offsets"]
    data = np.empty(end - begin, dtype=np.uint8)
    if file.readinto(data.data) != data.size or _digest(data) != digest:
        _refuse_damaged(path, f"array {name!r}", "its checksum does not match")
    try:
        return data.view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    except (ValueError, OverflowError):  # an empty array can declare a shape that NumPy cannot hold
        _refuse_damaged(path, f"array {name!r}", "its shape is impossible")


def _refuse_damaged(path: str | os.PathLike[str], section: str, reason: str) -> NoReturn:
    raise DamagedFile(f"{path}: expected a whole file, got a damaged {section}: {reason}. {_RESTORE}")
