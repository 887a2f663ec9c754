"""What is unusual and right works; equal numbers give equal codes however they are kept."""

import numpy as np
import pytest

import asymhash as ah

from .tables import LEARNERS, ROWS, SUPERVISED, classes, name_of, vectors

X = vectors()
Y = ah.similarity.labels(classes())


def read_only():
    frozen = X.copy()
    frozen.setflags(write=False)
    return frozen


class ArrayLike:
    def __array__(self, dtype=None, copy=None):
        return X.astype(dtype or X.dtype)


SAME_NUMBERS = {
    "float16": lambda: X.astype(np.float16),
    "float32": lambda: X.astype(np.float32),
    "big endian": lambda: X.astype(">f8"),
    "Fortran order": lambda: np.asfortranarray(X),
    "float32 in Fortran order": lambda: np.asfortranarray(X.astype(np.float32)),
    "non-contiguous": lambda: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards in memory": lambda: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "lists": X.tolist,
    "objects": lambda: X.astype(object),
    "array-like": ArrayLike,
}


@pytest.mark.parametrize("y", [None, Y], ids=["neighbours", "similarity"])
@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_equal_numbers_give_equal_bytes(row, y, tmp_path):
    wanted = row.make().fit(X, y)
    wanted.model_.save(tmp_path / "wanted")
    assert len(SAME_NUMBERS) > 10
    for name, make in SAME_NUMBERS.items():
        hasher = row.make().fit(make(), y)
        hasher.model_.save(tmp_path / "found")
        assert (tmp_path / "found").read_bytes() == (tmp_path / "wanted").read_bytes(), name
        assert hasher.encode_queries(make()) == wanted.encode_queries(X), name
        assert hasher.encode_database(make()) == wanted.encode_database(X), name
        assert np.array_equal(hasher.project(make()), wanted.project(X)), name
    assert np.array_equal(X, vectors()), "nobody writes into the data"


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_integers_and_booleans(row):
    pixels = np.random.default_rng(1).integers(0, 256, (40, 5)).astype(np.uint8)
    wanted = row.make().fit(pixels.astype(float), Y)
    for dtype in (np.uint8, np.int16, np.uint16, np.int64):
        hasher = row.make().fit(pixels.astype(dtype), Y)
        assert hasher.database_codes_ == wanted.database_codes_
        assert hasher.encode_queries(pixels.astype(dtype)) == wanted.encode_queries(pixels.astype(float))
    bits = pixels > 127
    assert row.make().fit(bits, Y).database_codes_ == row.make().fit(bits.astype(float), Y).database_codes_


@pytest.mark.parametrize(
    ("points", "n_bits"),
    [
        (np.repeat(X[:10], 4, axis=0), 3),
        (np.column_stack([X[:, :4], np.full(40, 7.0)]), 3),
        (np.full((40, 5), 3.0), 3),
        (np.zeros((40, 5)), 3),
        (X[:, :1], 1),
        (X * 1e90, 3),
        (X * 1e-200, 3),
        (X + 1e9, 3),
    ],
    ids=[
        "duplicate rows",
        "a constant feature",
        "all equal",
        "zeros",
        "one feature",
        "large",
        "tiny",
        "far away",
    ],
)
@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_unusual_vectors_work(row, points, n_bits):
    hasher = row.make(n_bits).fit(points, Y)
    assert len(hasher.database_codes_) == 40
    assert np.isfinite(hasher.project(points)).all()
    assert len(hasher.encode_database(points)) == 40


@pytest.mark.parametrize("row", SUPERVISED, ids=name_of)
def test_neighbours_of_tiny_vectors_are_those_of_larger_ones(row):
    """Squares of such vectors are 0, and all would be similar."""
    wanted = row.make().fit(X).model_.provenance["similarity"]
    found = row.make().fit(X * 2.0**-700).model_.provenance["similarity"]
    assert found["n_positives"] == wanted["n_positives"]
    assert found["radius"] == wanted["radius"] * 2.0**-700


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_few_items(row):
    n_bits = 5 if row.at_most_n_features else 70
    hasher = row.make(n_bits).fit(X[:3], [0, 0, 1])
    assert hasher.database_codes_.n_bits == n_bits
    assert len(row.make().fit(X[:2], [0, 1]).encode_queries(X)) == 40


@pytest.mark.parametrize("row", SUPERVISED, ids=name_of)
def test_two_equal_items_have_nothing_to_learn(row):
    with pytest.raises(ah.errors.InvalidArgument, match=r"got only similar pairs\. Narrow the radius"):
        row.make().fit(np.ones((2, 3)))


@pytest.mark.parametrize("row", LEARNERS, ids=name_of)
@pytest.mark.parametrize("loss", ["hinge", "logistic", "sqrt_logistic"])
def test_classes_that_are_learned_early_do_no_harm(row, loss):
    """With the hinge every pair is soon right by more than the margin, and nothing is left to gain."""
    y = np.repeat([0, 1], 20)
    apart = X + 100 * y[:, None]
    hasher = row.make(12, loss=loss).fit(apart, y)
    assert all(np.isfinite(record.objective) for record in hasher.history_)
    assert hasher.history_[-1].objective < 0.01
    signs = hasher.encode_queries(apart).to_signs(int) @ hasher.database_codes_.to_signs(int).T
    assert np.array_equal(signs > hasher.model_.threshold, y[:, None] == y)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "sqrt_logistic"])
@pytest.mark.parametrize("row", LEARNERS, ids=name_of)
def test_the_ends_of_the_loss_scale_work(row, loss, scale):
    """Warnings are errors: no table overflows."""
    hasher = row.make(18, loss=loss, loss_scale=scale).fit(X, Y)
    assert all(np.isfinite(record.objective) for record in hasher.history_)
    assert hasher.database_codes_.n_bits == 18


@pytest.mark.parametrize("row", LEARNERS, ids=name_of)
def test_queries_that_are_not_the_database(row):
    queries = vectors(15, seed=1)
    similarity = ah.similarity.neighbors(queries, X, average=4)
    hasher = row.make().fit(X, similarity, queries=queries)
    assert len(hasher.database_codes_) == 40
    assert hasher.encode_queries(queries).n_bits == 3
    assert hasher.model_.provenance["similarity"]["shape"] == (15, 40)
    default = row.make().fit(X, queries=queries).model_.provenance["similarity"]
    assert (default["shape"], default["average"]) == ((15, 40), 2)
    if row.free:
        assert len(hasher.model_.query_codes) == 15
        new = ah.similarity.neighbors(queries, vectors(7, seed=2), radius=similarity.radius)
        assert len(hasher.encode_database(vectors(7, seed=2), new)) == 7


@pytest.mark.parametrize("row", SUPERVISED, ids=name_of)
def test_labels_tags_and_similarities_mean_the_same(row):
    y = classes()
    wanted = row.make().fit(X, Y).database_codes_
    names = np.array(["ant", "bee", "cat", "dog"])[y]
    for same in (
        y,
        y.astype(float),
        y.tolist(),
        names,
        names.astype(object),
        y.astype(object),
        np.eye(4, dtype=int)[y],
        ah.similarity.from_matrix(y[:, None] == y),
        ah.similarity.shared_labels(np.eye(40, dtype=int)[y]),
    ):
        assert row.make().fit(X, same).database_codes_ == wanted


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_random_states(row):
    codes = [
        row.make(5, random_state=state).fit(X, Y).database_codes_
        for state in (
            3,
            np.int64(3),
            np.random.default_rng(3),
            np.random.RandomState(3),
            np.random.RandomState(3),
        )
    ]
    assert codes[0] == codes[1] == codes[2]
    assert codes[3] == codes[4]
    assert len(row.make(random_state=None).fit(X, Y).database_codes_) == 40


@pytest.mark.parametrize("row", [row for row in ROWS if "pca" in row.make().get_params()], ids=name_of)
def test_pca_beyond_the_features_changes_nothing(row):
    assert row.make(pca=5).fit(X, Y).database_codes_ == row.make().fit(X, Y).database_codes_
    hasher = row.make(pca=2).fit(X, Y)
    assert np.linalg.matrix_rank(hasher.model_.query_map.weights) <= 2
    assert hasher.model_.n_features == 5
