"""Running the command line inside the test process, and small files for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from asymhash.cli import main


class Result(NamedTuple):
    code: int
    stdout: str
    stderr: str


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_command(*arguments: object) -> Result:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Result(code, *capsys.readouterr())

    return run_command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Vectors of three clumps, queries, labels and tags."""
    rng = np.random.default_rng(5)
    centres = 3 * rng.normal(size=(3, 6))
    y = np.arange(90) % 3
    np.save(tmp_path / "vectors.npy", (centres[y] + rng.normal(size=(90, 6))).astype(np.float32))
    np.save(tmp_path / "queries.npy", (centres[y[:30]] + rng.normal(size=(30, 6))).astype(np.float32))
    np.save(tmp_path / "labels.npy", y)
    np.save(tmp_path / "query-labels.npy", y[:30])
    np.save(tmp_path / "tags.npy", np.eye(3, dtype=np.uint8)[y])
    np.save(tmp_path / "query-tags.npy", np.eye(3, dtype=np.uint8)[y[:30]])
    return tmp_path
