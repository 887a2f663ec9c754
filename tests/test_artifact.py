"""Files are the old one or the new one, and a damaged one is refused by name."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from asymhash import artifact
from asymhash.artifact import load_artifact, open_atomically, save_artifact
from asymhash.errors import DamagedFile, InvalidArgument, InvalidType, UnsupportedVersion

ARRAYS = {
    "codes": np.array([1, 2, 2**63], dtype=np.uint64),
    "weights": np.arange(6, dtype=np.float32).reshape(2, 3),
    "threshold": np.array(-1.5),
    "nothing": np.zeros((0, 4), dtype=np.float16),
    "flags": np.array([True, False]),
}
METADATA = {"method": "lin-v", "provenance": {"seed": 0, "note": 'q"uote é'}, "list": [1, 2.5, None, True]}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.ahm"
    save_artifact(path, kind="model", arrays=ARRAYS, metadata=METADATA)
    return path


def test_load_returns_what_was_saved(saved: Path) -> None:
    arrays, metadata = load_artifact(saved, kind="model")
    assert metadata == METADATA
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].shape == array.shape
        assert arrays[name].flags.writeable


def test_file_is_a_safetensors_file(saved: Path) -> None:
    arrays = safetensors.numpy.load_file(saved)
    assert arrays.keys() == ARRAYS.keys()
    np.testing.assert_array_equal(arrays["weights"], ARRAYS["weights"])


def test_same_content_gives_same_bytes(saved: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.ahm"
    save_artifact(
        again, kind="model", arrays=dict(reversed(ARRAYS.items())), metadata=dict(reversed(METADATA.items()))
    )
    assert again.read_bytes() == saved.read_bytes()


def test_no_arrays_and_no_metadata(tmp_path: Path) -> None:
    save_artifact(tmp_path / "empty.ahm", kind="model", arrays={}, metadata={})
    assert load_artifact(tmp_path / "empty.ahm", kind="model") == ({}, {})


def test_non_contiguous_big_endian_and_read_only_arrays(tmp_path: Path) -> None:
    original = np.arange(12, dtype=">i4").reshape(3, 4)
    transposed = original.T
    transposed.flags.writeable = False
    save_artifact(tmp_path / "a.ahm", kind="x", arrays={"a": transposed, "b": original[:, ::2]}, metadata={})
    arrays, _ = load_artifact(tmp_path / "a.ahm", kind="x")
    np.testing.assert_array_equal(arrays["a"], original.T)
    np.testing.assert_array_equal(arrays["b"], original[:, ::2])


@settings(max_examples=50, deadline=None)
@given(
    array=hnp.arrays(
        dtype=st.one_of(hnp.boolean_dtypes(), hnp.integer_dtypes(), hnp.unsigned_integer_dtypes()),
        shape=hnp.array_shapes(min_dims=0, min_side=0),
    ),
    text=st.text(),
)
def test_any_array_and_any_text_survive(
    tmp_path_factory: pytest.TempPathFactory, array: np.ndarray, text: str
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.ahm"
    save_artifact(path, kind="x", arrays={"a": array}, metadata={"text": text})
    arrays, metadata = load_artifact(path, kind="x")
    np.testing.assert_array_equal(arrays["a"], array)
    assert arrays["a"].shape == array.shape
    assert metadata == {"text": text}


def test_metadata_that_imitates_the_header_digest(tmp_path: Path) -> None:
    metadata = {"header_xxh3_128": "0" * 32, 'x{"header_xxh3_128":"': {"header_xxh3_128": "0" * 32}}
    save_artifact(tmp_path / "a.ahm", kind="x", arrays={}, metadata=metadata)
    assert load_artifact(tmp_path / "a.ahm", kind="x") == ({}, metadata)


def test_every_flipped_byte_is_refused(saved: Path) -> None:
    good = saved.read_bytes()
    accepted = []
    with saved.open("r+b", buffering=0) as file:
        for offset, byte in enumerate(good):
            # 0x29 turns the padding's spaces into tabs, which JSON would not notice
            for mask in [1, 2, 4, 8, 16, 32, 64, 128, 0x29, 0xFF]:
                os.pwrite(file.fileno(), bytes([byte ^ mask]), offset)
                try:
                    load_artifact(saved, kind="model")
                except DamagedFile as error:
                    assert str(saved) in str(error)
                else:
                    accepted.append((offset, mask))
            os.pwrite(file.fileno(), bytes([byte]), offset)
    assert len(good) > 700
    assert accepted == []
    assert load_artifact(saved, kind="model")[1] == METADATA


def test_every_truncation_is_refused(saved: Path) -> None:
    size = saved.stat().st_size
    for length in reversed(range(size)):
        os.truncate(saved, length)
        with pytest.raises(DamagedFile, match=r"model\.ahm"):
            load_artifact(saved, kind="model")


@pytest.mark.parametrize("tail", [b"\0", b" ", b"x" * 100])
def test_appended_bytes_are_refused(saved: Path, tail: bytes) -> None:
    saved.write_bytes(saved.read_bytes() + tail)
    with pytest.raises(
        DamagedFile, match=rf"a damaged data: 58 bytes were written, {58 + len(tail)} are there"
    ):
        load_artifact(saved, kind="model")


def test_damaged_array_is_named(saved: Path) -> None:
    data = bytearray(saved.read_bytes())
    data[-1] ^= 1
    saved.write_bytes(data)
    with pytest.raises(DamagedFile) as caught:
        load_artifact(saved, kind="model")
    assert str(caught.value) == (
        f"{saved}: expected a whole file, got a damaged array 'flags': its checksum does not match. "
        "Restore it from a copy or make it again."
    )


def test_wrong_kind_is_named(saved: Path) -> None:
    with pytest.raises(InvalidArgument) as caught:
        load_artifact(saved, kind="index")
    assert str(caught.value) == f"{saved}: expected a file of kind 'index', got kind 'model'."


def test_newer_version_is_named(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact, "FORMAT_VERSION", 2)
    save_artifact(saved, kind="model", arrays=ARRAYS, metadata=METADATA)
    monkeypatch.setattr(artifact, "FORMAT_VERSION", 1)
    with pytest.raises(UnsupportedVersion) as caught:
        load_artifact(saved, kind="model")
    assert str(caught.value) == (
        f"{saved}: expected format version 1 or older, got 2. Update asymhash to read it."
    )


def test_files_of_others_are_named(tmp_path: Path) -> None:
    path = tmp_path / "other"
    safetensors.numpy.save_file({"W": np.eye(5)}, path, {"format": "somebody else's file"})
    others = [path.read_bytes(), b"\x93NUMPY" + b" " * 200, b"plain text " * 20, bytes(500), b"\xff" * 500]
    for content in others:
        path.write_bytes(content)
        with pytest.raises(InvalidArgument) as caught:
            load_artifact(path, kind="model")
        assert str(caught.value) == f"{path}: expected a file written by asymhash, got something else."


def test_missing_file_is_the_usual_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_artifact(tmp_path / "absent", kind="model")


def _sealed(header: dict[str, object], data: bytes, *, content: dict[str, object] | None = None) -> bytes:
    """A file whose header digest is right and whose content was made up by an attacker."""
    base = {
        "header_xxh3_128": "0" * 32,
        "format": "asymhash",
        "format_version": 1,
        "kind": "model",
        "arrays": {name: xxhash.xxh3_128_hexdigest(data) for name in header},
        "metadata": {},
    }
    text = json.dumps({**base, **(content or {})}, separators=(",", ":"))
    encoded = json.dumps({"__metadata__": {"asymhash": text}, **header}, separators=(",", ":")).encode()
    start = len(encoded).to_bytes(8, "little") + encoded
    digest = xxhash.xxh3_128_hexdigest(start).encode()
    return start.replace(b"0" * 32, digest, 1) + data


def test_sealed_file_of_the_test_itself_loads(tmp_path: Path) -> None:
    path = tmp_path / "a.ahm"
    path.write_bytes(_sealed({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}, b"abcd"))
    assert load_artifact(path, kind="model")[0]["a"].tobytes() == b"abcd"


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "U8", "shape": [2**62], "data_offsets": [0, 2**62]},
        {"dtype": "F64", "shape": [2**40, 2**40], "data_offsets": [0, 4]},
        {"dtype": "U8", "shape": [2**62], "data_offsets": [0, 4]},
        {"dtype": "U8", "shape": [-4], "data_offsets": [0, -4]},
        {"dtype": "U8", "shape": [4.0], "data_offsets": [0, 4]},
        {"dtype": "U8", "shape": [True, 4], "data_offsets": [0, 4]},
        {"dtype": "U8", "shape": [2], "data_offsets": [2, 4]},
        {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
        {"dtype": "O", "shape": [4], "data_offsets": [0, 4]},
        {"dtype": "U8", "shape": "4", "data_offsets": [0, 4]},
        {"dtype": "U8", "shape": [4], "data_offsets": [0]},
        {"dtype": "U8", "shape": [4]},
        [],
        None,
    ],
)
def test_impossible_sizes_are_refused_before_allocation(tmp_path: Path, entry: object) -> None:
    path = tmp_path / "a.ahm"
    path.write_bytes(_sealed({"a": entry}, b"abcd"))
    with pytest.raises(DamagedFile, match=r"a\.ahm"):
        load_artifact(path, kind="model")


@pytest.mark.parametrize("shape", [[0, 2**80], [0] * 100])
def test_impossible_shapes_of_nothing_are_refused(tmp_path: Path, shape: list[int]) -> None:
    path = tmp_path / "a.ahm"
    path.write_bytes(_sealed({"a": {"dtype": "U8", "shape": shape, "data_offsets": [0, 0]}}, b""))
    with pytest.raises(DamagedFile, match="its shape is impossible"):
        load_artifact(path, kind="model")


def test_overlapping_arrays_are_refused(tmp_path: Path) -> None:
    entry = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
    path = tmp_path / "a.ahm"
    path.write_bytes(_sealed({"a": entry, "b": entry}, b"abcd"))
    with pytest.raises(DamagedFile, match="does not fit its place"):
        load_artifact(path, kind="model")


@pytest.mark.parametrize(
    "content", [{"format": "x"}, {"format_version": "1"}, {"arrays": []}, {"metadata": None}, {"arrays": {}}]
)
def test_headers_without_the_expected_content_are_refused(tmp_path: Path, content: dict[str, object]) -> None:
    path = tmp_path / "a.ahm"
    path.write_bytes(
        _sealed({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}, b"abcd", content=content)
    )
    with pytest.raises(DamagedFile, match=r"a\.ahm"):
        load_artifact(path, kind="model")


def test_huge_header_length_is_refused_before_allocation(saved: Path) -> None:
    saved.write_bytes((2**62).to_bytes(8, "little") + saved.read_bytes()[8:])
    with pytest.raises(DamagedFile, match=f"it declares {2**62} bytes"):
        load_artifact(saved, kind="model")


def test_objects_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.ahm"
    with pytest.raises(InvalidType) as caught:
        save_artifact(path, kind="model", arrays={"names": np.array([object()])}, metadata={})
    assert str(caught.value) == (
        "save_artifact: array 'names' must have a bool, integer or floating dtype of at most 64 bits, "
        "got object."
    )
    with pytest.raises(InvalidType, match="complex128"):
        save_artifact(path, kind="model", arrays={"z": np.array([1j])}, metadata={})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "error"),
    [(float("nan"), InvalidArgument), (np.float64("inf"), InvalidArgument), (object(), InvalidType)],
)
def test_metadata_that_is_not_json_is_refused(tmp_path: Path, value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="save_artifact: metadata must be JSON values, got a value that is not"):
        save_artifact(tmp_path / "a.ahm", kind="model", arrays={}, metadata={"value": value})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failed_write_leaves_the_old_file_alone(
    saved: Path, monkeypatch: pytest.MonkeyPatch, call: str, failure: BaseException
) -> None:
    before = saved.read_bytes()

    def fail(*arguments: object) -> None:
        raise failure

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(type(failure)):
        save_artifact(saved, kind="model", arrays={}, metadata={})
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_interrupted_block_leaves_nothing(tmp_path: Path) -> None:
    def write_half() -> None:
        with open_atomically(tmp_path / "codes.npy") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert list(tmp_path.iterdir()) == []


def test_unwritable_places_are_the_usual_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        save_artifact(tmp_path / "absent" / "a.ahm", kind="model", arrays={}, metadata={})
    with pytest.raises(IsADirectoryError, match="expected a file to write, got a folder"):
        save_artifact(tmp_path, kind="model", arrays={}, metadata={})
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        save_artifact(blocked / "a.ahm", kind="model", arrays={}, metadata={})


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into any folder")
def test_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        save_artifact(tmp_path / "a.ahm", kind="model", arrays={}, metadata={})


def test_symbolic_link_is_followed_and_permissions_are_the_usual(saved: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.ahm"
    link.symlink_to(saved)
    save_artifact(link, kind="model", arrays={}, metadata={"new": True})
    assert link.is_symlink()
    assert load_artifact(saved, kind="model")[1] == {"new": True}
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(saved.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def pipe(folder: Path) -> tuple[Path, str]:
    os.mkfifo(folder / "pipe")
    return folder / "pipe", "a named pipe"


def listener(folder: Path) -> tuple[Path, str]:
    with contextlib.chdir(folder), socket.socket(socket.AF_UNIX) as server:  # a name is at most 107 bytes
        server.bind("socket")
    return folder / "socket", "a socket"


def link_to_pipe(folder: Path) -> tuple[Path, str]:
    (folder / "link").symlink_to(pipe(folder)[0])
    return folder / "link", "a named pipe"


@pytest.mark.parametrize("make", [pipe, listener, link_to_pipe])
def test_special_files_are_not_replaced(tmp_path: Path, make: Callable[[Path], tuple[Path, str]]) -> None:
    path, kind = make(tmp_path)
    before, mode = sorted(tmp_path.iterdir()), path.stat().st_mode
    message = (
        f"{path}: expected a regular file or a new one, got {path}, which is {kind}. Choose another name."
    )
    with pytest.raises(InvalidArgument, match=f"^{re.escape(message)}$"):
        save_artifact(path, kind="model", arrays={}, metadata={})
    assert (sorted(tmp_path.iterdir()), path.stat().st_mode) == (before, mode)


@pytest.mark.parametrize(
    ("mode", "kind"), [(stat.S_IFCHR, "a character device"), (stat.S_IFBLK, "a block device")]
)
def test_devices_are_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, kind: str
) -> None:
    """No test touches a real device: a file is said to be one."""
    path = tmp_path / "device"
    path.write_bytes(b"as it was")
    as_it_is, name = os.stat, os.fspath(path)

    def device(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        found = as_it_is(path, *arguments, **options)
        return os.stat_result((mode, *found[1:])) if os.fspath(path) == name else found

    monkeypatch.setattr(os, "stat", device)
    with pytest.raises(InvalidArgument, match=f"got {re.escape(name)}, which is {kind}"):
        save_artifact(path, kind="model", arrays={}, metadata={})
    monkeypatch.undo()
    assert path.read_bytes() == b"as it was"


def test_a_link_to_nothing_yet_is_followed(tmp_path: Path) -> None:
    link = tmp_path / "link.ahm"
    link.symlink_to(tmp_path / "new.ahm")
    save_artifact(link, kind="model", arrays={}, metadata={"new": True})
    assert link.is_symlink()
    assert load_artifact(tmp_path / "new.ahm", kind="model")[1] == {"new": True}


def test_nothing_is_unpickled() -> None:
    source = Path(artifact.__file__).read_text()
    assert "pickle" not in source
    assert "eval(" not in source
