"""What a model tells of how it was made."""

import copy
import json
import pickle
import re

import numpy as np
import pytest

import asymhash as ah
from asymhash.errors import InvalidArgument, InvalidType
from asymhash.linear_map import LinearMap

from .tables import FAST, ROWS, classes, name_of, vectors

X = vectors()
Y = ah.similarity.labels(classes())
NUMPY = {int: np.int64, float: np.float64, str: np.str_}


def bytes_of(model, path):
    model.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_numbers_of_numpy_are_recorded_as_those_of_python(row, tmp_path):
    hasher = row.make()
    plain = {name: value for name, value in hasher.get_params().items() if type(value) in NUMPY}
    assert {"n_bits", "random_state"} <= set(plain)
    wanted = bytes_of(hasher.fit(X, Y).model_, tmp_path / "model")
    other = row.make().set_params(**{name: NUMPY[type(value)](value) for name, value in plain.items()})
    assert bytes_of(other.fit(X, Y).model_, tmp_path / "model") == wanted
    seeds = [row.make(random_state=np.int32(seed)).fit(X, Y).model_.provenance for seed in (0, 1)]
    assert [made["parameters"]["random_state"] for made in seeds] == [0, 1]
    assert seeds[0] != seeds[1]


def test_a_float32_is_recorded_as_the_number_that_it_is():
    made = ah.LinV(2, beta=np.float32(0.7), random_state=0, **FAST).fit(X, Y).model_
    assert made.provenance["parameters"]["beta"] == made.objective.beta == float(np.float32(0.7))


def test_what_json_cannot_hold_is_recorded_by_its_type():
    seeds = {"Generator": np.random.default_rng(0), "RandomState": np.random.RandomState(0)}
    for name, seed in seeds.items():
        made = ah.LSH(2, random_state=seed).fit(X).model_.provenance["parameters"]
        assert made["random_state"] == repr(name)


CHANGES = {
    "update": lambda made: made.update(seed=1),
    "set": lambda made: made.__setitem__("seed", 1),
    "delete": lambda made: made.__delitem__("versions"),
    "pop": lambda made: made.pop("versions"),
    "popitem": lambda made: made.popitem(),
    "clear": lambda made: made.clear(),
    "setdefault": lambda made: made.setdefault("seed", 1),
    "ior": lambda made: made.__ior__({"seed": 1}),
    "deep": lambda made: made["parameters"].update(n_bits=7),
    "deeper": lambda made: made["similarity"]["shape"].__setitem__(0, 7),
}


@pytest.mark.parametrize("loaded", [False, True], ids=["fitted", "loaded"])
@pytest.mark.parametrize("change", CHANGES)
def test_provenance_cannot_be_changed(change, loaded, tmp_path):
    model = ah.LinLin(2, random_state=0, **FAST).fit(X, Y).model_
    before = bytes_of(model, tmp_path / "model")
    if loaded:
        model = ah.load(tmp_path / "model")
    with pytest.raises((TypeError, AttributeError)) as caught:
        CHANGES[change](model.provenance)
    if change != "deeper":
        message = "metadata: it must stay as it is, got a change. Change a copy: dict(metadata)."
        assert str(caught.value) == message
    assert bytes_of(model, tmp_path / "again") == before


def test_provenance_is_a_copy_that_json_and_pickle_take(tmp_path):
    given = {"parameters": {"list": [1, {"a": None}]}}
    model = ah.Model(method="LSH", n_bits=3, provenance=given)
    given["parameters"]["list"][1]["a"] = 2
    wanted = {"parameters": {"list": [1, {"a": None}]}}
    assert json.loads(json.dumps(model.provenance)) == wanted
    before = bytes_of(model, tmp_path / "model")
    loaded = ah.load(tmp_path / "model")
    assert loaded.provenance == model.provenance
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model)), loaded):
        assert bytes_of(other, tmp_path / "other") == before
        with pytest.raises(InvalidType):
            other.provenance["parameters"].clear()
    free = dict(model.provenance)
    free["more"] = 1
    assert "more" not in model.provenance


MAP, OTHER = (LinearMap(np.ones((8, d)), np.zeros(8)) for d in (5, 4))
CODES = ah.BinaryCodes.from_bools(np.ones((2, 8), dtype=bool))


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ({"query_map": MAP}, InvalidArgument, "query_map must have the 3 bits of the model, got 8."),
        ({"database_map": MAP}, InvalidArgument, "database_map must have the 3 bits of the model, got 8."),
        (
            {"database_codes": CODES},
            InvalidArgument,
            "database_codes must have the 3 bits of the model, got 8.",
        ),
        ({"query_codes": CODES}, InvalidArgument, "query_codes must have the 3 bits of the model, got 8."),
        (
            {"n_bits": 8, "query_map": MAP, "database_map": OTHER},
            InvalidArgument,
            "database_map must have the 5 features of query_map, got 4.",
        ),
        (
            {"query_map": np.ones((3, 5))},
            InvalidType,
            "query_map must be a LinearMap, a KernelMap or None, got a ndarray.",
        ),
        (
            {"query_codes": np.ones((2, 3))},
            InvalidType,
            "query_codes must be BinaryCodes or None, got a ndarray.",
        ),
        ({"provenance": None}, InvalidType, "provenance must be a mapping, got a NoneType."),
        ({"n_bits": 0}, InvalidArgument, "n_bits must be an integer from 1 to 1024, got 0."),
    ],
)
def test_parts_that_are_not_of_one_model_are_refused(parts, error, message):
    with pytest.raises(error, match=f"^Model: {re.escape(message)}$"):
        ah.Model(**{"method": "LSH", "n_bits": 3, **parts})
    fitting = ah.Model(method="LSH", n_bits=8, query_map=MAP, database_map=MAP, query_codes=CODES)
    assert fitting.encode_queries(X).n_bits == 8
