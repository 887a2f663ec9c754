"""Ctrl-C and kill end a command with the usual code and leave no half-written file and no process."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from asymhash.cli import main


def test_ctrl_c_while_fitting(run, folder: Path, monkeypatch) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    before = sorted(folder.iterdir())
    monkeypatch.setattr(importlib.import_module("asymhash.cli.fit"), "build_similarity", interrupt)
    result = run("fit", folder / "vectors.npy", "--output", folder / "m.ahm")
    assert result.code == 130
    assert result.stderr.endswith("Interrupted. No output was left half-written.\n")
    assert sorted(folder.iterdir()) == before


def test_ctrl_c_while_encoding_keeps_the_old_file(run, folder: Path, monkeypatch) -> None:
    model, codes = folder / "m.ahm", folder / "codes.npy"
    assert run("fit", folder / "vectors.npy", "--method", "lsh", "--bits", 4, "--output", model).code == 0
    codes.write_bytes(b"old")
    before = sorted(folder.iterdir())
    calls = []

    def interrupt(*arguments: object) -> None:
        calls.append(arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("asymhash.cli.encode"), "_encode_block", interrupt)
    result = run("encode", model, folder / "vectors.npy", "--side", "query", "--output", codes, "--force")
    assert calls
    assert result.code == 130
    assert codes.read_bytes() == b"old"
    assert sorted(folder.iterdir()) == before


def processes_of_session(session: int) -> list[str]:
    done = subprocess.run(
        ["ps", "-o", "pid=", "-s", str(session)], capture_output=True, text=True, check=False
    )
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize("to_group", [False, True], ids=["process", "group"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"]
)
def test_signals_end_all_processes(to_group: bool, number: signal.Signals, code: int) -> None:
    if to_group and number == signal.SIGTERM:
        pytest.skip("a group that is told to end ends, whatever we do")
    arguments = [
        "evaluate",
        "nursery",
        "--bits",
        "512",
        "--method",
        "lin-v",
        "--method",
        "lin-lin",
        "--jobs",
        "2",
    ]
    command = "import sys; from asymhash.cli import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(4)
    assert process.poll() is None, process.communicate()
    (os.killpg if to_group else os.kill)(process.pid, number)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == code
    assert stdout == ""
    assert "Traceback" not in stderr
    deadline = time.monotonic() + 10
    while processes_of_session(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes_of_session(process.pid) == []


def test_sigterm_handler_is_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    main(["info", "--json"])
    assert signal.getsignal(signal.SIGTERM) is before


def test_kill_in_the_middle_of_a_write_leaves_no_temporary_file(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from asymhash import cli\n"
        "signal.signal(signal.SIGTERM, cli._leave)\n"
        "from asymhash.artifact import open_atomically\n"
        "with open_atomically(sys.argv[1]) as file:\n"
        "    file.write(b'half')\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    import time; time.sleep(10)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "c.npy")], check=False, timeout=30)
    assert done.returncode == 143
    assert list(tmp_path.iterdir()) == []
