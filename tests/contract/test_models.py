"""What a model promises: files that come back bit by bit, shorter models inside longer ones, two sides."""

import math
import pickle

import numpy as np
import pytest

import asymhash as ah
from asymhash.artifact import load_artifact, save_artifact
from asymhash.errors import AsymhashError, DamagedFile, UnsupportedOperation, UnsupportedVersion

from .tables import FAST, NESTING, ROWS, classes, name_of, vectors

X, NEW = vectors(), vectors(12, seed=7)
Y = ah.similarity.labels(classes())
Y_NEW = ah.similarity.labels(classes(), classes(12))


def bytes_of(model, path):
    model.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("n_bits", [1, 7, 64, 65])
@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_a_saved_model_comes_back(row, n_bits, tmp_path):
    wide = vectors(n_features=max(5, n_bits) if row.at_most_n_features else 5)
    quick = {"n_sweeps": 0} if row.learns else {}
    model = row.make(n_bits, **quick).fit(wide, Y).model_
    raw = bytes_of(model, tmp_path / "model")
    for loaded in (ah.load(tmp_path / "model"), ah.Model.load(str(tmp_path / "model"))):
        assert loaded.encode_queries(wide) == model.encode_queries(wide)
        assert loaded.encode_database(wide) == model.encode_database(wide)
        assert loaded.database_codes == model.database_codes
        assert np.array_equal(loaded.project(wide), model.project(wide))
        assert repr(loaded) == repr(model)
        assert (loaded.threshold, loaded.n_features, loaded.n_bits) == (
            model.threshold,
            wide.shape[1],
            n_bits,
        )
        assert bytes_of(loaded, tmp_path / "again") == raw
    if row.free:
        assert loaded.encode_database(wide[:12], Y_NEW) == model.encode_database(wide[:12], Y_NEW)


@pytest.mark.parametrize("symmetric", [False, True])
def test_saved_codes_of_a_matrix_come_back(symmetric, tmp_path):
    codes = ah.MatrixCodes(9, symmetric=symmetric, random_state=0).fit(Y)
    raw = bytes_of(codes.model_, tmp_path / "model")
    loaded = ah.load(tmp_path / "model")
    assert (loaded.query_codes, loaded.database_codes) == (codes.query_codes_, codes.database_codes_)
    assert not symmetric or codes.query_codes_ == codes.database_codes_
    assert loaded.encode_database(None, Y_NEW) == codes.encode_database(Y_NEW)
    assert bytes_of(loaded, tmp_path / "again") == raw
    assert (
        bytes_of(ah.MatrixCodes(9, symmetric=symmetric, random_state=0).fit(Y).model_, tmp_path / "b") == raw
    )
    for k in range(1, 9):
        short = ah.MatrixCodes(k, symmetric=symmetric, random_state=0).fit(Y)
        assert bytes_of(codes.truncate(k).model_, tmp_path / "c") == bytes_of(short.model_, tmp_path / "d")


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_equal_fits_give_equal_bytes(row, tmp_path):
    one, other = (bytes_of(row.make(5).fit(X, Y).model_, tmp_path / "model") for _ in range(2))
    assert one == other
    assert bytes_of(row.make(5, random_state=1).fit(X, Y).model_, tmp_path / "model") != one


@pytest.mark.parametrize("y", [Y, None], ids=["classes", "neighbours"])
@pytest.mark.parametrize("row", NESTING, ids=name_of)
def test_shorter_models_are_part_of_longer_ones(row, y, tmp_path):
    long = row.make(6).fit(X, y)
    for k in range(1, 7):
        short, part = row.make(k).fit(X, y), long.truncate(k)
        assert bytes_of(part.model_, tmp_path / "part") == bytes_of(short.model_, tmp_path / "short")
        assert part.get_params() == short.get_params()
        assert part.n_features_in_ == 5
        assert [r.objective for r in part.history_] == [r.objective for r in short.history_]
        assert bytes_of(part.truncate(1).model_, tmp_path / "part") == bytes_of(
            row.make(1).fit(X, y).model_, tmp_path / "short"
        )
    assert long.model_.n_bits == 6


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_the_query_side_is_all_that_a_client_needs(row, tmp_path):
    model = row.make(5).fit(X, Y).model_
    bytes_of(model.query_side(), tmp_path / "client")
    arrays, _ = load_artifact(tmp_path / "client", kind="model")
    kernel = set() if row.linear else {"query_map.anchors", "query_map.width"}
    assert set(arrays) == {"query_map.weights", "query_map.offset"} | kernel
    client = ah.load(tmp_path / "client")
    assert client.encode_queries(NEW) == model.encode_queries(NEW)
    assert np.array_equal(client.project(NEW), model.project(NEW))
    assert client.database_codes is client.query_codes is client.database_map is None
    for side in (client, model.query_side()):
        message = f"^{row.name}.encode_database: expected a model with a database map, got one without. Use the whole"
        with pytest.raises(UnsupportedOperation, match=message):
            side.encode_database(NEW)
        with pytest.raises(UnsupportedOperation, match=message):
            side.database_encoding(with_similarity=False)
        with pytest.raises(UnsupportedOperation, match="database side is a map or was left out"):
            side.encode_database(NEW, Y_NEW)
    assert client.query_side().encode_queries(NEW) == model.encode_queries(NEW)


def test_codes_of_a_matrix_have_no_query_side():
    model = ah.MatrixCodes(2, random_state=0).fit(Y).model_
    with pytest.raises(
        UnsupportedOperation, match=r"^MatrixCodes\.query_side: expected a model with a query map"
    ):
        model.query_side()


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_signs_of_the_projection_are_the_codes(row):
    hasher = row.make(5).fit(X, Y)
    for points in (X, NEW, X.mean(axis=0, keepdims=True), X[:0]):
        wanted = ah.BinaryCodes.from_bools(hasher.project(points) >= 0)
        assert hasher.encode_queries(points) == wanted
    assert hasher.project(X).dtype == np.float64
    assert hasher.project(X).shape == (40, 5)
    assert np.array_equal(hasher.transform(X), hasher.encode_queries(X).to_bytes())
    assert (hasher.encode_queries(X) == hasher.encode_database(X)) is row.one_map
    if not row.free:
        assert hasher.encode_database(X) == hasher.database_codes_


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_models_are_frozen(row):
    model = row.make().fit(X, Y).model_
    with pytest.raises(AttributeError):
        model.n_bits = 4
    for array in (model.query_map.weights, model.query_map.offset, model.database_codes.words):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def item_loss(model, code, similar):
    """Objective of one new item, by a loop over the training queries."""
    objective, total = model.objective, 0.0
    for query, s in zip(model.query_codes.to_signs(int), similar, strict=True):
        margin = s * (sum(int(a) * int(b) for a, b in zip(query, code, strict=True)) - objective.theta)
        margin /= objective.scale
        one = math.log1p(math.exp(-margin))
        loss = {"logistic": one, "sqrt_logistic": math.sqrt(one), "hinge": max(0.0, 1.0 - margin)}
        total += (objective.beta if s > 0 else 1.0 - objective.beta) * loss[objective.loss]
    return total


@pytest.mark.parametrize("loss", ["sqrt_logistic", "logistic", "hinge"])
def test_new_items_with_similarities_get_codes_that_no_flip_improves(loss):
    hasher = ah.LinV(5, loss=loss, random_state=0, **FAST).fit(X, Y)
    model = hasher.model_
    assert model.database_encoding(with_similarity=True) == "free codes"
    assert model.database_encoding(with_similarity=False) == "linear map fitted to the free codes"
    codes = hasher.encode_database(NEW, Y_NEW)
    start = hasher.encode_database(NEW)
    dense, lower = Y_NEW.to_dense(), 0
    for j, (code, first) in enumerate(zip(codes.to_signs(int), start.to_signs(int), strict=True)):
        reached = item_loss(model, code, dense[:, j])
        assert reached <= item_loss(model, first, dense[:, j]) + 1e-9
        lower += reached < item_loss(model, first, dense[:, j]) - 1e-9
        for bit in range(5):
            flipped = code.copy()
            flipped[bit] *= -1
            assert reached <= item_loss(model, flipped, dense[:, j]) + 1e-9
    assert lower > 0, "the map alone was best already, nothing was tested"


def test_new_items_of_a_matrix_get_codes_that_no_flip_improves():
    codes = ah.MatrixCodes(4, random_state=0).fit(Y)
    model = codes.model_
    assert model.database_encoding(with_similarity=True) == "free codes"
    with pytest.raises(UnsupportedOperation, match="expected a model with a database map"):
        model.database_encoding(with_similarity=False)
    dense = Y_NEW.to_dense()
    for j, code in enumerate(codes.encode_database(Y_NEW).to_signs(int)):
        reached = item_loss(model, code, dense[:, j])
        for bit in range(4):
            flipped = code.copy()
            flipped[bit] *= -1
            assert reached <= item_loss(model, flipped, dense[:, j]) + 1e-9


def test_items_are_encoded_one_by_one_as_all_together(monkeypatch):
    hasher = ah.LinV(5, random_state=0, **FAST).fit(X, Y)
    codes = hasher.encode_database(NEW, Y_NEW)
    assert hasher.encode_database(NEW[3:4], Y_NEW.columns([3])) == codes[3]
    assert len(hasher.encode_database(NEW[:0], Y_NEW.columns([]))) == 0
    monkeypatch.setattr("asymhash.model._FREE_BLOCK_PAIRS", 130)
    assert hasher.encode_database(NEW, Y_NEW) == codes
    projected = hasher.project(NEW)
    monkeypatch.setattr("asymhash.linear_map._BLOCK_VALUES", 17)
    np.testing.assert_allclose(hasher.project(NEW), projected, rtol=1e-12)
    assert hasher.encode_queries(NEW) == ah.BinaryCodes.from_bools(projected >= 0)


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_a_model_tells_how_it_encodes_the_database(row):
    model = row.make().fit(X, Y).model_
    learned = "learned linear map" if row.linear else "learned kernel map"
    wanted = "linear map fitted to the free codes" if row.free else learned
    assert model.database_encoding(with_similarity=False) == wanted
    assert model.method == row.name
    assert model.provenance["parameters"] == row.make().get_params()
    assert set(model.provenance["versions"]) == {"asymhash", "numpy", "scikit-learn"}
    assert (model.threshold is not None) is row.learns


# ---- files that are not what they were


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.ahm"
    ah.LinV(6, random_state=0, **FAST).fit(X, Y).model_.save(path)
    return path


def test_damage_is_refused_by_name(saved, tmp_path):
    raw = saved.read_bytes()
    path = tmp_path / "damaged.ahm"
    positions = np.random.default_rng(0).permutation(len(raw))[:300]
    assert len(positions) == 300
    sections = set()
    for position in positions:
        broken = bytearray(raw)
        broken[position] ^= 1 << int(position % 8)
        path.write_bytes(broken)
        with pytest.raises((DamagedFile, UnsupportedVersion), match=r"damaged\.ahm") as caught:
            ah.load(path)
        sections |= {name for name in ("header", "query_map.weights", "codes") if name in str(caught.value)}
    assert sections == {"header", "query_map.weights", "codes"}
    for broken in (raw[:-1], raw[:100], b"", raw + b"\0"):
        path.write_bytes(broken)
        with pytest.raises(DamagedFile, match=r"damaged\.ahm"):
            ah.load(path)


def changed(**changes):
    def change(arrays, metadata):
        metadata.update(changes)

    return change


def objective(**changes):
    def change(arrays, metadata):
        metadata["objective"].update(changes)

    return change


def array(name, make):
    def change(arrays, metadata):
        arrays[name] = make(arrays.get(name))

    return change


def without(name):
    def change(arrays, metadata):
        (arrays if name in arrays else metadata).pop(name)

    return change


METADATA = "section metadata: "
INCONSISTENT = {
    "n_bits of other arrays": (
        changed(n_bits=5),
        "section query_map.weights: there must be finite float64 numbers",
    ),
    "no bits": (changed(n_bits=0), METADATA + "n_bits must be an integer from 1 to 1024, got 0."),
    "too many bits": (changed(n_bits=1025), METADATA + "n_bits must be an integer from 1 to 1024, got 1025."),
    "n_bits a string": (changed(n_bits="6"), METADATA + "n_bits must be an integer from 1 to 1024, got '6'"),
    "no n_bits": (without("n_bits"), METADATA + "there must be database_map_is_learned, method, n_bits"),
    "something more": (changed(more=1), METADATA + "there must be database_map_is_learned, method, n_bits"),
    "a method that is no name": (changed(method=3), METADATA + "method must be a str, got a int."),
    "a word for a bool": (
        changed(database_map_is_learned="no"),
        METADATA + "database_map_is_learned must be a bool, got a str.",
    ),
    "provenance a list": (changed(provenance=[]), METADATA + "provenance must be a dict, got a list."),
    "unknown loss": (
        objective(loss="square"),
        METADATA + "loss must be one of 'sqrt_logistic', 'logistic', 'hinge'",
    ),
    "beta": (
        objective(beta=2),
        METADATA + "beta must be a finite number greater than 0 and less than 1, got 2.",
    ),
    "theta": (objective(theta="x"), METADATA + "theta must be a finite number, got 'x' of type str."),
    "an objective of more": (
        objective(gamma=1),
        METADATA + "objective must have loss, beta, theta and scale, got {",
    ),
    "an objective of no kind": (
        changed(objective=[1]),
        METADATA + "objective must have loss, beta, theta and scale, got [1].",
    ),
    "flat weights": (
        array("query_map.weights", np.ravel),
        "section query_map.weights: there must be finite float64 numbers of shape (6, 1), got float64 of shape (30,).",
    ),
    "float32 weights": (
        array("query_map.weights", lambda a: a.astype(np.float32)),
        "section query_map.weights: there must be finite float64 numbers of shape (6, 5), got float32 of shape (6, 5).",
    ),
    "nan": (
        array("database_map.weights", lambda a: a * np.nan),
        "section database_map.weights: there must be finite float64 numbers of shape (6, 5), got NaN or inf.",
    ),
    "no features": (
        array("query_map.weights", lambda a: a[:, :0]),
        "section query_map.weights: there must be finite float64 numbers of shape (6, 1), got float64 of shape (6, 0).",
    ),
    "a short offset": (
        array("query_map.offset", lambda a: a[:5]),
        "section query_map.offset: there must be finite float64 numbers of shape (6,), got float64 of shape (5,).",
    ),
    "no offset": (
        without("query_map.offset"),
        "section query_map.offset: there must be finite float64 numbers of shape (6,), got none.",
    ),
    "no weights": (
        without("query_map.weights"),
        "section query_map.weights: there must be finite float64 numbers of shape (6, 1), got none.",
    ),
    "maps of other vectors": (
        array("database_map.weights", lambda a: a[:, :4]),
        "section database_map.weights: the weights must have the 5 features of query_map, got 4.",
    ),
    "unused bits": (
        array("database_codes", lambda a: a | np.uint64(64)),
        "section database_codes: there must be codes of 6 bits, got others.",
    ),
    "wide codes": (
        array("query_codes", lambda a: np.repeat(a, 2, axis=1)),
        "section query_codes: there must be codes of 6 bits, got others.",
    ),
    "codes as numbers": (
        array("query_codes", lambda a: a.astype(np.float64)),
        "section query_codes: there must be codes of 6 bits, got others.",
    ),
    "an array of no part": (
        array("other", lambda a: np.ones(3)),
        "section other: there must be no such section, got one.",
    ),
}


@pytest.mark.parametrize("case", INCONSISTENT)
def test_parts_that_do_not_fit_are_refused_though_the_checksums_are_right(case, saved, tmp_path):
    change, message = INCONSISTENT[case]
    arrays, metadata = load_artifact(saved, kind="model")
    change(arrays, metadata)
    path = tmp_path / "inconsistent.ahm"
    save_artifact(
        path, kind="model", arrays={k: np.ascontiguousarray(v) for k, v in arrays.items()}, metadata=metadata
    )
    with pytest.raises(DamagedFile) as caught:
        ah.load(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert str(caught.value).endswith("Restore it from a copy or make it again.")


def test_loading_opens_no_pickle(saved, monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("a pickle was opened")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr(np.lib.format, "read_array", refuse)
    assert ah.load(saved).n_bits == 6
    assert pickle.dumps(ah.LSH()) not in saved.read_bytes()


def test_a_pickle_is_refused(tmp_path):
    path = tmp_path / "model.ahm"
    path.write_bytes(pickle.dumps(ah.LSH(2, random_state=0).fit(X)))
    with pytest.raises(
        AsymhashError, match=r"model\.ahm: expected a file written by asymhash, got something else"
    ):
        ah.load(path)


def test_the_loop_that_is_the_truth_here_agrees_with_the_fit():
    """`item_loss` summed over the training items is the objective that the history tells."""
    hasher = ah.LinV(4, random_state=0, **FAST).fit(X, Y)
    dense = Y.to_dense()
    total = sum(
        item_loss(hasher.model_, code, dense[:, j])
        for j, code in enumerate(hasher.database_codes_.to_signs(int))
    )
    assert total / dense.size == pytest.approx(hasher.history_[-1].objective, rel=1e-12)
