"""No command replaces what it reads, or what is no regular file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import click
import numpy as np
import pytest
import scipy.sparse

from asymhash.cli import asymhash
from asymhash.cli.options import ExistingFile

# For every command that writes a file: the call, with every file that it can read.
CALLS = {
    "fit": {
        "VECTORS": "fit {path}",
        "--labels": "fit vectors.npy --labels {path}",
        "--tags": "fit vectors.npy --tags {path}",
        "--query-labels": "fit vectors.npy --labels labels.npy --queries queries.npy --query-labels {path}",
        "--similarity": "fit vectors.npy --similarity {path}",
        "--queries": "fit vectors.npy --queries {path}",
    },
    "encode": {
        "MODEL": "encode {path} vectors.npy --side query",
        "VECTORS": "encode m.ahm {path} --side query",
        "--similarity": "encode m.ahm vectors.npy --side database --similarity {path}",
    },
}
FILES = {
    "VECTORS": "vectors.npy",
    "MODEL": "m.ahm",
    "--labels": "labels.npy",
    "--tags": "tags.npy",
    "--query-labels": "query-labels.npy",
    "--similarity": "s.npz",
    "--queries": "queries.npy",
}
CASES = [(command, name) for command, calls in CALLS.items() for name in calls]


@pytest.fixture
def inputs(run, folder: Path, monkeypatch) -> Path:
    monkeypatch.chdir(folder)
    y = np.load("labels.npy")
    scipy.sparse.save_npz("s.npz", scipy.sparse.csr_array((y[:, None] == y[None, :]).astype(np.int8)))
    assert run("fit", "vectors.npy", "--bits", 2, "--output", "m.ahm").code == 0
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_every_file_that_a_writing_command_reads_is_in_the_table() -> None:
    found = {
        name: {
            parameter.opts[0] if isinstance(parameter, click.Option) else parameter.human_readable_name
            for parameter in command.params
            if parameter.type is ExistingFile
        }
        for name, command in asymhash.commands.items()
        if any(parameter.name == "force" for parameter in command.params)
    }
    assert found == {command: set(calls) for command, calls in CALLS.items()}


@pytest.mark.parametrize("force", [[], ["--force"]], ids=["", "force"])
@pytest.mark.parametrize(("command", "name"), CASES)
def test_an_input_is_not_replaced_by_the_output(run, inputs: Path, command, name, force) -> None:
    before = contents(inputs)
    file = FILES[name]
    result = run(*CALLS[command][name].format(path=file).split(), "--output", f"./{file}", *force)
    assert result.code == 2
    assert result.stderr == (
        f"Error: --output: expected another file than those that are read, got {file}, which is {name}. "
        "Choose another name.\n"
    )
    assert contents(inputs) == before


def test_a_link_to_an_input_is_not_followed(run, inputs: Path) -> None:
    (inputs / "link").symlink_to("vectors.npy")
    before = contents(inputs)
    result = run("fit", "vectors.npy", "--output", "link", "--force")
    assert result.code == 2
    assert "got link, which is VECTORS." in result.stderr
    assert contents(inputs) == before


def test_a_link_to_another_file_is_followed(run, inputs: Path) -> None:
    (inputs / "link").symlink_to("other.ahm")
    assert run("fit", "vectors.npy", "--bits", 2, "--output", "link").code == 0
    assert (inputs / "link").is_symlink()
    assert (inputs / "other.ahm").read_bytes() == (inputs / "m.ahm").read_bytes()
    (inputs / "lost").symlink_to("absent/other.ahm")
    result = run("fit", "vectors.npy", "--output", "lost")
    assert result.code == 2
    assert "--output: expected a file in an existing folder, got lost." in result.stderr


@pytest.mark.parametrize("arguments", ["fit vectors.npy", "encode m.ahm vectors.npy --side query"])
def test_a_special_file_is_not_replaced(run, inputs: Path, arguments: str) -> None:
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    for name in ("pipe", "link"):
        result = run(*arguments.split(), "--output", name, "--force")
        assert result.code == 2
        assert result.stderr == (
            f"Error: --output: expected a regular file or a new one, got {name}, which is a named pipe. "
            "Choose another name.\n"
        )
    assert stat.S_ISFIFO(os.lstat("pipe").st_mode)
    assert Path("link").is_symlink()
