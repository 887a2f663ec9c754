"""Every command has help, is documented, and answers a wrong call with one line and the right exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest

from asymhash.artifact import save_artifact
from asymhash.cli import asymhash
from asymhash.methods import METHODS

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "cli.md"


def walk(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from walk(child, (*path, name))
    else:
        yield path, command


COMMANDS = dict(walk(asymhash))


def test_the_commands_are_there() -> None:
    assert {" ".join(path) for path in COMMANDS} >= {"demo", "fit", "encode", "evaluate", "methods", "info"}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(run, path) -> None:
    result = run(*path, "--help")
    assert result.code == 0
    assert result.stderr == ""
    assert f"Example: asymhash {' '.join(path)}" in result.stdout
    assert run(*path, "-h").stdout == result.stdout
    for parameter in COMMANDS[path].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_and_option_is_documented(path) -> None:
    text = DOCUMENTATION.read_text()
    heading = f"## asymhash {' '.join(path)}\n"
    assert heading in text
    section = text.split(heading)[1].split("\n## ")[0]
    assert f"    asymhash {' '.join(path)}" in section
    options = [parameter for parameter in COMMANDS[path].params if isinstance(parameter, click.Option)]
    missing = [option.opts[-1] for option in options if f"{option.opts[-1]}" not in section]
    assert options
    assert missing == []


def test_every_method_is_documented() -> None:
    text = DOCUMENTATION.read_text()
    assert METHODS
    assert [name for name in METHODS if f"| `{name}` |" not in text] == []


@pytest.mark.parametrize("path", [(), *COMMANDS], ids=" ".join)
def test_help_fits_into_80_columns_without_breaking_examples(run, path) -> None:
    lines = run(*path, "--help").stdout.splitlines()
    assert len(lines) > 5
    assert max(len(line) for line in lines) <= 80
    examples = [number for number, line in enumerate(lines) if line.startswith("  Example: ")]
    assert all(lines[number + 1].strip() == "" or number + 1 in examples for number in examples)


@pytest.mark.parametrize(
    "option",
    [
        ["--method", "itq"],
        ["--bits", "8"],
        ["--seeds", "1"],
        ["--rule", "pooled"],
        ["--train-items", "1000"],
        ["--max-queries", "9"],
        ["--pca", "8"],
        ["--jobs", "1"],
    ],
    ids=" ".join,
)
def test_options_of_the_protocol_are_refused_with_a_model(run, folder: Path, option: list[str]) -> None:
    result = run("evaluate", "--model", folder / "vectors.npy", *option)
    assert result.code == 2
    assert result.stderr == f"Error: {option[0]} belongs to SOURCE, got it with --model. Leave it out.\n"


def test_short_help_is_whole(run) -> None:
    result = run()
    assert result.code == 0
    assert "Commands:" in result.stdout
    assert "..." not in result.stdout.split("Commands:")[1]


def test_version(run) -> None:
    result = run("--version")
    assert result.code == 0
    assert result.stdout.startswith("asymhash, version ")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nope"], 2, "No such command 'nope'. See asymhash --help."),
        (["fit"], 2, "Missing argument 'VECTORS'. See asymhash fit --help."),
        (
            ["fit", "absent.npy", "--output", "m.ahm"],
            2,
            "File 'absent.npy' does not exist. See asymhash fit --help.",
        ),
        (["fit", "vectors.npy"], 2, "Missing option '--output'. See asymhash fit --help."),
        (
            ["fit", "vectors.npy", "--bits", "0", "--output", "m"],
            2,
            "'--bits': 0 is not in the range 1<=x<=1024.",
        ),
        (["fit", "vectors.npy", "--method", "x", "--output", "m"], 2, "'x' is not one of 'lin-v', 'lin-lin'"),
        (
            ["fit", "vectors.npy", "--radius", "1", "--labels", "labels.npy", "--output", "m.ahm"],
            2,
            "what is similar must be said by one option, got --radius and --labels. Leave all but one out.",
        ),
        (
            ["fit", "vectors.npy", "--method", "lsh", "--labels", "labels.npy", "--output", "m.ahm"],
            2,
            "--method lsh learns from the database vectors alone, got --labels. Leave it out.",
        ),
        (
            ["fit", "vectors.npy", "--queries", "queries.npy", "--labels", "labels.npy", "--output", "m.ahm"],
            2,
            "--labels for other queries than the database needs --query-labels, got none. Give both.",
        ),
        (
            ["fit", "vectors.npy", "--query-labels", "labels.npy", "--output", "m.ahm"],
            2,
            "--query-labels belongs to --labels or --tags with --queries, got it without. Leave it out.",
        ),
        (
            ["fit", "vectors.npy", "--output", "absent/m.ahm"],
            2,
            "--output: expected a file in an existing folder, got absent/m.ahm. Make absent first.",
        ),
        (
            ["fit", "vectors.npy", "--output", "labels.npy"],
            2,
            "--output: labels.npy exists already. Give --force to replace it, or another name.",
        ),
        (
            ["fit", "labels.npy", "--output", "m.ahm"],
            2,
            "fit: labels.npy must hold a 2-d array (items x features)",
        ),
        (
            ["fit", "text.npy", "--output", "m.ahm"],
            1,
            "expected a readable .npy file, got text.npy, which is damaged",
        ),
        (
            ["fit", "vectors.csv", "--output", "m.ahm"],
            2,
            "the file's name must end in .npy, .npz, .fvecs or .bvecs",
        ),
        (
            ["encode", "text.npy", "vectors.npy", "--side", "query", "--output", "c.npy"],
            2,
            "text.npy: expected a file written by asymhash, got something else.",
        ),
        (
            ["encode", "damaged.ahm", "vectors.npy", "--side", "query", "--output", "c.npy"],
            1,
            "damaged.ahm: expected a whole file, got a damaged header",
        ),
        (
            [
                "encode",
                "m",
                "vectors.npy",
                "--side",
                "query",
                "--similarity",
                "labels.npy",
                "--output",
                "c.npy",
            ],
            2,
            "File 'm' does not exist",
        ),
        (
            ["evaluate", "vectors.npy"],
            2,
            "--train-items must be below the 90 items of vectors.npy, as the others are the queries, got 1000.",
        ),
        (["evaluate"], 2, "expected either SOURCE or --model, got neither."),
        (["evaluate", "nursery", "--model", "text.npy"], 2, "expected either SOURCE or --model, got both."),
        (["evaluate", "absent"], 2, "SOURCE must be a vectors file or one of uniform10, nursery, digits"),
        (["evaluate", "nursery", "--radius", "1"], 2, "--radius belongs to --model, got it with SOURCE."),
        (
            ["evaluate", "nursery", "--stored-codes"],
            2,
            "--stored-codes belongs to --model, got it with SOURCE.",
        ),
        (
            ["evaluate", "--model", "text.npy"],
            2,
            "--model needs --queries and --database, got only one or none.",
        ),
        (
            ["evaluate", "nursery", "--key", "X"],
            2,
            "--key belongs to a vectors file, got it with a data set.",
        ),
        (
            ["fit", "vectors.npy", "--method", "itq", "--pca", "2", "--output", "m.ahm"],
            2,
            "--method itq takes no principal components but its own, got --pca. Leave it out.",
        ),
        (
            ["fit", "vectors.npy", "--method", "mlh", "--no-refine", "--output", "m.ahm"],
            2,
            "--method mlh has nothing to refine, got --no-refine. Leave it out.",
        ),
        (
            ["fit", "vectors.npy", "--method", "lsh", "--query-labels", "labels.npy", "--output", "m.ahm"],
            2,
            "--method lsh learns from the database vectors alone, got --query-labels. Leave it out.",
        ),
        (
            ["fit", "vectors.npy", "--similarity", "s", "--query-labels", "labels.npy", "--output", "m.ahm"],
            2,
            "File 's' does not exist",
        ),
        (["evaluate", "mnist", "--bits", "8"], 1, "load: 'mnist' needs a folder of data files"),
        (["demo", "--output", "text.npy"], 2, "'text.npy' is a file"),
        (["demo", "--output", "text.npy/inside"], 2, "expected a folder, got text.npy/inside"),
    ],
)
def test_errors_are_one_line(run, folder: Path, monkeypatch, arguments, code, message) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("ASYMHASH_DATA", raising=False)
    (folder / "text.npy").write_text("plain text, longer than the smallest file that could be ours " * 3)
    np.savetxt(folder / "vectors.csv", np.zeros((2, 2)))
    save_artifact(folder / "damaged.ahm", kind="model", arrays={}, metadata={})
    data = bytearray((folder / "damaged.ahm").read_bytes())
    data[100] ^= 1
    (folder / "damaged.ahm").write_bytes(data)
    before = sorted(folder.iterdir())
    result = run(*arguments)
    assert result.code == code
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1 or "Finding what is similar" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert message in result.stderr
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            MemoryError("Unable to allocate 8 TiB"),
            "got too little (Unable to allocate 8 TiB). Use fewer items or bits.",
        ),
        (OSError(28, "No space left on device", "m.ahm"), "m.ahm: No space left on device."),
        (PermissionError(13, "Permission denied", "m.ahm"), "m.ahm: Permission denied."),
    ],
)
def test_failures_of_the_machine_are_one_line(run, folder: Path, monkeypatch, error, line) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr("asymhash.vectors.read_vectors", fail)
    result = run("fit", folder / "vectors.npy", "--output", folder / "m.ahm")
    assert result.code == 1
    assert result.stderr.endswith(f"{line}\n")
    assert result.stderr.count("\n") == 1
    assert not (folder / "m.ahm").exists()


def test_info_tells_kernels_extras_and_data(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("ASYMHASH_DATA", str(tmp_path))
    (tmp_path / "mnist.npz").touch()
    facts = json.loads(run("info", "--json").stdout)
    assert facts["kernels"]["level"] in facts["kernels"]["levels"]
    assert facts["versions"]["numpy"] == np.__version__
    assert facts["threads"]["cores"] >= 1
    assert facts["data"]["folder"] == str(tmp_path)
    assert facts["data"]["sets"]["mnist"] == "found"
    assert facts["data"]["sets"]["nursery"] == "built in"
    assert facts["data"]["sets"]["corel5k_gist"] == "not found"
    assert all(
        extra["install"] == f"pip install 'asymhash[{name}]'" for name, extra in facts["extras"].items()
    )
    text = run("info").stdout
    assert facts["kernels"]["level"] in text
    assert "mnist             found" in text


def test_info_without_data_folder(run, monkeypatch) -> None:
    monkeypatch.delenv("ASYMHASH_DATA", raising=False)
    assert "ASYMHASH_DATA: not set" in run("info").stdout


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from asymhash.cli import main; main(['--help']); "
        "heavy = {'sklearn', 'scipy', 'matplotlib', 'rich'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
