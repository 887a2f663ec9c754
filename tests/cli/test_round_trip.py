"""fit -> encode -> evaluate on small files."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from asymhash import BinaryCodes, load
from asymhash.evaluate import average_precisions
from asymhash.methods import METHODS
from asymhash.similarity import labels, neighbors


@pytest.fixture
def model(run, folder: Path) -> Path:
    path = folder / "model.ahm"
    result = run("fit", folder / "vectors.npy", "--bits", 6, "--neighbors", 20, "--output", path)
    assert result.code == 0, result.stderr
    return path


@pytest.mark.parametrize("method", METHODS)
def test_every_method_round_trips(run, folder: Path, method: str) -> None:
    model, codes = folder / "m.ahm", folder / "codes.npy"
    similar = ["--neighbors", 20] if METHODS[method].learns_similarity else []
    result = run(
        "fit", folder / "vectors.npy", "--method", method, "--bits", 5, *similar, "--output", model, "--json"
    )
    assert result.code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["n_bits"] == 5
    assert report["n_items"] == 90
    assert report["method"] == method
    vectors = {"query": np.load(folder / "queries.npy"), "database": np.load(folder / "vectors.npy")}
    for side, name in [("query", "queries"), ("database", "vectors")]:
        arguments = [model, folder / f"{name}.npy", "--side", side, "--output", codes, "--force"]
        result = run("encode", *arguments, "--json")
        assert result.code == 0, result.stderr
        assert json.loads(result.stdout)["n_bits"] == 5
        loaded = load(model)
        expected = (loaded.encode_queries if side == "query" else loaded.encode_database)(vectors[side])
        packed = np.load(codes)
        assert packed.dtype == np.uint8
        assert packed.shape == (len(vectors[side]), 1)
        assert BinaryCodes.from_bytes(packed, 5) == expected


def test_same_seed_same_model(run, folder: Path) -> None:
    for name in ["a.ahm", "b.ahm"]:
        arguments = ["--bits", 4, "--labels", folder / "labels.npy", "--seed", 3, "--output", folder / name]
        assert run("fit", folder / "vectors.npy", *arguments).code == 0
    assert (folder / "a.ahm").read_bytes() == (folder / "b.ahm").read_bytes()


def test_bit_orders(run, folder: Path, model: Path) -> None:
    codes = {}
    for order in ["little", "big"]:
        path = folder / f"{order}.npy"
        arguments = ["--side", "query", "--bit-order", order, "--output", path]
        assert run("encode", model, folder / "queries.npy", *arguments).code == 0
        codes[order] = np.load(path)
    expected = load(model).encode_queries(np.load(folder / "queries.npy")).to_bools()
    np.testing.assert_array_equal(np.unpackbits(codes["little"], axis=1, bitorder="little")[:, :6], expected)
    np.testing.assert_array_equal(np.unpackbits(codes["big"], axis=1, bitorder="big")[:, :6], expected)
    assert codes["little"].any()


def test_encoding_in_blocks_is_encoding_at_once(run, folder: Path, model: Path, monkeypatch) -> None:
    whole, blocks = folder / "whole.npy", folder / "blocks.npy"
    assert run("encode", model, folder / "vectors.npy", "--side", "query", "--output", whole).code == 0
    module = importlib.import_module("asymhash.cli.encode")  # the name itself is the command's
    monkeypatch.setattr(module, "_BLOCK_VALUES", 6 * 7)
    assert module.block_size(6) == 7
    assert run("encode", model, folder / "vectors.npy", "--side", "query", "--output", blocks).code == 0
    assert blocks.read_bytes() == whole.read_bytes()


def test_database_side_tells_its_map(run, folder: Path, model: Path) -> None:
    result = run("encode", model, folder / "vectors.npy", "--side", "database", "--output", folder / "c.npy")
    assert (
        result.stderr
        == "Database side: a linear map fitted to the free codes, as no --similarity was given.\n"
    )
    relation = scipy.sparse.csr_array(
        np.asarray(labels(np.load(folder / "labels.npy")).to_dense() > 0).astype(np.int8)
    )
    scipy.sparse.save_npz(folder / "s.npz", relation)
    arguments = [
        "--similarity",
        folder / "s.npz",
        "--side",
        "database",
        "--output",
        folder / "c.npy",
        "--force",
    ]
    result = run("encode", model, folder / "vectors.npy", *arguments, "--json")
    assert result.code == 0, result.stderr
    assert "Database side: free codes that minimise the objective, from --similarity." in result.stderr
    assert json.loads(result.stdout)["map"] == "free codes"
    scipy.sparse.save_npz(folder / "s.npz", relation[:, :10])
    result = run("encode", model, folder / "vectors.npy", *arguments)
    assert result.code == 2
    assert "expected one column for each of the 90 items, got 10 columns" in result.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["--labels", "labels.npy"],
        ["--tags", "tags.npy"],
        ["--radius", "2.5"],
        ["--similarity", "s.npz"],
        ["--queries", "queries.npy", "--neighbors", "20"],
        ["--queries", "queries.npy", "--labels", "labels.npy", "--query-labels", "query-labels.npy"],
        ["--queries", "queries.npy", "--tags", "tags.npy", "--query-labels", "query-tags.npy"],
        ["--neighbors", "20", "--pca", "3"],
    ],
    ids=" ".join,
)
def test_ways_to_say_what_is_similar(run, folder: Path, monkeypatch, options: list[str]) -> None:
    monkeypatch.chdir(folder)
    y = np.load("labels.npy")
    scipy.sparse.save_npz("s.npz", scipy.sparse.csr_array((y[:, None] == y[None, :]).astype(np.int8)))
    result = run("fit", "vectors.npy", "--bits", 4, *options, "--output", "m.ahm", "--json")
    assert result.code == 0, result.stderr
    report = json.loads(result.stdout)
    assert 0.05 < report["share_similar"] < 0.5
    if not {"--neighbors", "--radius"} & set(options):
        assert report["share_similar"] == pytest.approx(1 / 3)
    assert load("m.ahm").n_bits == 4


def test_bad_vectors_are_named(run, folder: Path) -> None:
    vectors = np.load(folder / "vectors.npy")
    vectors[7, 2] = np.nan
    np.save(folder / "vectors.npy", vectors)
    result = run("fit", folder / "vectors.npy", "--output", folder / "m.ahm")
    assert result.code == 2
    message = f"{folder / 'vectors.npy'} must be finite, got NaN in row 7, column 2. Remove or fill such rows first.\n"
    assert result.stderr == f"Error: fit: {message}"
    assert not (folder / "m.ahm").exists()
    result = run("evaluate", folder / "vectors.npy", "--train-items", 60)
    assert (result.code, result.stderr) == (2, f"Error: evaluate: {message}")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((0, 6)), "must have at least {items}, got 0 (n_samples = 0)."),
        (
            np.zeros((4, 0)),
            "must have features, got 0 feature(s) (shape=(4, 0)) while a minimum of 1 is required.",
        ),
        (
            np.full((4, 6), 1e200),
            "must hold numbers of at most 1e+100 in size, got 1e+200. Scale {name} down.",
        ),
        (
            np.full((4, 6), np.inf),
            "must be finite, got inf in row 0, column 0. Remove or fill such rows first.",
        ),
    ],
    ids=["no items", "no features", "too large", "inf"],
)
def test_the_file_of_bad_vectors_is_named(
    run, folder: Path, model: Path, wrong, message, monkeypatch
) -> None:
    monkeypatch.chdir(folder)
    np.save("wrong.npy", wrong)
    calls = {
        "fit": "fit wrong.npy --output new.ahm",
        "--queries": "fit vectors.npy --queries wrong.npy --output new.ahm",
        "--database": f"evaluate --model {model} --queries queries.npy --database wrong.npy",
        "evaluate": "evaluate wrong.npy --train-items 2",
    }
    for where, call in calls.items():
        result = run(*call.split())
        expected = message.format(name="wrong.npy", items="2 items" if where == "fit" else "1 item")
        assert (result.code, result.stderr) == (2, f"Error: {where}: wrong.npy {expected}\n")
        assert not Path("new.ahm").exists()


def test_queries_of_another_width_are_named(run, folder: Path, model: Path, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    np.save("narrow.npy", np.zeros((4, 5)))
    calls = [
        "fit vectors.npy --queries narrow.npy --output new.ahm",
        f"evaluate --model {model} --queries narrow.npy --database vectors.npy",
    ]
    for call in calls:
        result = run(*call.split())
        assert result.code == 2
        assert "--queries: narrow.npy must have 6 features, got 5." in result.stderr


def test_encoding_names_the_row_of_the_file(run, folder: Path, model: Path, monkeypatch) -> None:
    """The row is that of the file, in whatever block it was found."""
    monkeypatch.chdir(folder)
    vectors = np.load("vectors.npy")
    vectors[37, 2] = np.nan
    np.save("vectors.npy", vectors)
    for values in (1 << 22, 60, 1):
        monkeypatch.setattr(importlib.import_module("asymhash.cli.encode"), "_BLOCK_VALUES", values)
        result = run("encode", model, "vectors.npy", "--side", "query", "--output", "c.npy")
        assert result.code == 2
        assert result.stderr.startswith(
            "Error: encode: vectors.npy must be finite, got NaN in row 37, column 2."
        )
        assert not Path("c.npy").exists()


def test_wrong_dimension_leaves_no_output(run, folder: Path, model: Path) -> None:
    np.save(folder / "narrow.npy", np.zeros((4, 5)))
    result = run("encode", model, folder / "narrow.npy", "--side", "query", "--output", folder / "c.npy")
    assert result.code == 2
    assert not (folder / "c.npy").exists()
    assert not list(folder.glob(".*"))


def test_evaluate_a_model(run, folder: Path, model: Path) -> None:
    arguments = ["evaluate", "--model", model, "--queries", folder / "queries.npy"]
    arguments += ["--database", folder / "vectors.npy", "--neighbors", 20, "--json"]
    result = run(*arguments)
    assert result.code == 0, result.stderr
    assert "--stored-codes uses them" in result.stderr
    report = json.loads(result.stdout)
    queries, database = np.load(folder / "queries.npy"), np.load(folder / "vectors.npy")
    loaded = load(model)
    relation = neighbors(queries, database, average=20)
    expected = average_precisions(loaded.encode_queries(queries), loaded.encode_database(database), relation)
    assert report["average_precision"] == pytest.approx(expected)
    assert report["average_precision"]["step_pairs"] > report["share_similar"]
    report = json.loads(run(*arguments, "--stored-codes").stdout)
    expected = average_precisions(loaded.encode_queries(queries), loaded.database_codes, relation)
    assert report["average_precision"] == pytest.approx(expected)
    text = run(*arguments[:-1], "--quiet")
    assert text.stderr == ""
    assert "AP step_pairs" in text.stdout


def test_stored_codes_must_fit(run, folder: Path, model: Path) -> None:
    arguments = ["--queries", folder / "queries.npy", "--database", folder / "queries.npy", "--stored-codes"]
    result = run("evaluate", "--model", model, *arguments, "--neighbors", 5)
    assert result.code == 2
    assert "--stored-codes: expected 90 items in --database" in result.stderr


def test_evaluate_a_source(run, folder: Path) -> None:
    arguments = ["evaluate", folder / "vectors.npy", "--train-items", 60, "--neighbors", 10, "--seeds", 2]
    arguments += ["--method", "itq", "--method", "lsh", "--bits", 8, "--bits", 4, "--jobs", 1]
    report = json.loads(run(*arguments, "--json").stdout)
    assert report["n_database"] == 60
    assert report["n_queries"] == 30
    assert [(row["method"], row["n_bits"], row["n_bits_used"]) for row in report["summary"]] == [
        ("itq", 4, 4),
        ("itq", 8, 6),
        ("lsh", 4, 4),
        ("lsh", 8, 8),
    ]
    assert len(report["records"]) == 8
    for row in report["summary"]:
        values = [
            record["average_precisions"]["step_pairs"]
            for record in report["records"]
            if (record["method"], record["n_bits"]) == (row["method"], row["n_bits"])
        ]
        assert row["means"]["step_pairs"] == pytest.approx(np.mean(values))
        assert row["spreads"]["step_pairs"] == pytest.approx(np.std(values, ddof=1))
    text = run(*arguments).stdout
    assert text.startswith("vectors: 60 database items, 30 queries, 10 neighbours on average\n")
    assert "Average precision, mean ± spread of 2 seeds\n" in text
    assert re.search(r"\nITQ +8\* +0\.", text)
    assert "\n* in fewer bits: this method cannot have more than the vectors have features\n" in text
    assert max(len(line) for line in text.splitlines()) <= 80
