"""What the README shows runs as it stands, and its table is the demo's."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")
MAX_LINES = 150
# Another processor's linear algebra may round a sign near zero another way; one item more or less moves AP by less.
TOLERANCE = 0.02


def blocks(language):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    return [block for found, block in fenced if found == language]


def run(command, folder):
    """Run as a user would, with the environment of this interpreter first on the path."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_readme_is_short():
    assert len(TEXT.splitlines()) < MAX_LINES


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_python_runs(number, tmp_path):
    block = blocks("python")[number]
    assert len(block.splitlines()) <= 12
    stdout = run([sys.executable, "-W", "error", "-c", block], tmp_path)
    assert 0.5 < float(stdout.split()[-1]) < 1
    assert (tmp_path / "model.ahm").exists()


def test_commands_run(tmp_path):
    (block,) = blocks("sh")
    assert block.count("asymhash ") >= 4
    stdout = run(["bash", "-euo", "pipefail", "-c", block], tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"vectors.npy", "new.npy", "model.ahm", "codes.npy"}
    assert "Average precision, one seed" in stdout


def test_there_is_one_block_of_each():
    assert len(blocks("python")) == len(blocks("sh")) == 1


@pytest.mark.slow
def test_table_is_what_the_demo_prints(tmp_path):
    stdout = run(["asymhash", "demo", "--quiet", "--output", "pictures"], tmp_path)
    assert len(list((tmp_path / "pictures").iterdir())) == 2
    shown = [block for block in blocks("") if "Lin:V" in block]
    assert len(shown) == 1
    number = re.compile(r"0\.\d{3}")
    tables = stdout.split("The query is")[0]
    assert number.sub("", shown[0]).split() == number.sub("", tables).split()
    ours, theirs = ([float(found) for found in number.findall(text)] for text in (shown[0], tables))
    assert len(ours) == 3 * 8 * 4 * 2
    assert ours == pytest.approx(theirs, abs=TOLERANCE)
