"""What a model tells of how it was made."""

import numpy as np
import pytest

import asymhash as ah

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
