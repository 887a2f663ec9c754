"""The Similarity value: construction, views, equality, words."""

import json
import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp

from asymhash.errors import InvalidArgument, InvalidType
from asymhash.similarity import Similarity, from_matrix, labels, neighbors


def random_similarity(m: int = 7, n: int = 11, seed: int = 0) -> tuple[Similarity, np.ndarray]:
    dense = np.where(np.random.default_rng(seed).random((m, n)) < 0.3, 1, -1).astype(np.int8)
    dense[2] = -1  # a query without positives
    return from_matrix(dense), dense


def test_dense_round_trip_and_counts():
    similarity, dense = random_similarity()
    assert similarity.n_positives == np.count_nonzero(dense == 1) > 0
    assert np.array_equal(similarity.to_dense(), dense)
    assert similarity.to_dense().dtype == np.int8
    assert (similarity.shape, similarity.n_queries, similarity.n_items) == ((7, 11), 7, 11)
    assert similarity.share_positive == similarity.n_positives / 77
    assert similarity.radius is None


def test_csr_holds_int8_ones_and_owns_its_arrays():
    similarity, dense = random_similarity()
    csr = similarity.to_csr()
    assert csr.dtype == np.int8
    assert np.array_equal(csr.toarray(), dense > 0)
    csr.indices[0] = 10
    assert np.array_equal(similarity.to_dense(), dense)


def test_transpose():
    similarity, dense = random_similarity()
    assert np.array_equal(similarity.transpose().to_dense(), dense.T)
    assert similarity.transpose().transpose() == similarity


def test_is_symmetric(monkeypatch):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((40, 40)) < 0.3, 1, -1)
    mirrored = np.triu(dense) + np.triu(dense, 1).T
    for block in (1 << 20, 7):
        monkeypatch.setattr("asymhash.similarity.similarity._BLOCK_POSITIVES", block)
        assert from_matrix(mirrored).is_symmetric()
        assert not from_matrix(dense).is_symmetric()
        for i, j in ((0, 1), (39, 3), (17, 20)):
            one_off = mirrored.copy()
            one_off[i, j] *= -1
            assert not from_matrix(one_off).is_symmetric()
        assert not from_matrix(mirrored[:39]).is_symmetric()
        assert from_matrix(-np.ones((3, 3))).is_symmetric()


CHOICES = [slice(1, 6, 2), slice(None, None, -1), [3, 0, 3, 2], np.array([-1, 1]), [], np.arange(7) % 3 == 0]


@pytest.mark.parametrize("ids", CHOICES, ids=str)
def test_rows_and_columns_choose_as_numpy_does(ids):
    similarity, dense = random_similarity(7, 7)
    chosen = ids if isinstance(ids, slice) or len(ids) else np.empty(0, dtype=int)
    assert np.array_equal(similarity.rows(ids).to_dense(), dense[chosen])
    assert np.array_equal(similarity.columns(ids).to_dense(), dense[:, chosen])


def test_rows_and_columns_keep_the_radius():
    similarity = neighbors(np.arange(10.0)[:, None], average=3)
    assert similarity.radius == 2.0
    assert similarity.rows([1, 2]).columns(slice(5)).radius == 2.0


@pytest.mark.parametrize("side", ["rows", "columns"])
def test_ids_that_do_not_fit_are_refused(side):
    similarity, _ = random_similarity(7, 7)
    with pytest.raises(
        InvalidArgument, match=f"^Similarity.{side}: ids must fit 7 entries, got index 7 is out of"
    ):
        getattr(similarity, side)([7])
    message = (
        f"Similarity.{side}: ids must be a slice, 1-d integers or a boolean mask, got a 1-d array of float64."
    )
    with pytest.raises(InvalidType, match=f"^{re.escape(message)}$"):
        getattr(similarity, side)([0.5])


def test_equality_is_about_positives_not_origin():
    similarity, dense = random_similarity()
    same = Similarity(similarity.indptr, similarity.indices, similarity.shape, origin={"kind": "other"})
    assert same == similarity
    assert similarity != from_matrix(-dense)
    assert similarity != similarity.columns(slice(10))
    assert similarity != "similarity"


def test_value_is_frozen():
    indices = np.array([0, 1])
    similarity = Similarity([0, 2], indices, (1, 2), origin={"kind": "matrix"})
    indices[0] = 1
    assert similarity.indices.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        similarity.indices[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        similarity.indptr[0] = 1
    with pytest.raises(TypeError, match="does not support item assignment"):
        similarity.origin["kind"] = "other"
    with pytest.raises(AttributeError):
        similarity.shape = (2, 1)


def test_origin_is_json_and_survives_a_copy_to_another_process():
    similarity = neighbors(np.arange(6.0)[:, None], average=2)
    assert json.loads(json.dumps(dict(similarity.origin)))["radius"] == similarity.radius
    copy = pickle.loads(pickle.dumps(similarity))
    assert copy == similarity
    assert copy.origin == similarity.origin


def test_repr_names_sizes_and_origin():
    X = np.arange(6.0)[:, None]
    assert repr(neighbors(X, average=2)) == (
        "Similarity(6 queries x 6 items, 66.7% similar, neighbors average=2 rule=pooled)"
    )
    assert repr(neighbors(X, radius=1.5, rule="mean_kth")) == (
        "Similarity(6 queries x 6 items, 44.4% similar, neighbors radius=1.5 rule=mean_kth)"
    )
    assert repr(labels([1, 2])) == "Similarity(2 queries x 2 items, 50.0% similar, labels)"


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)])
def test_empty_shapes_are_allowed(shape):
    similarity = Similarity(np.zeros(shape[0] + 1, dtype=int), [], shape)
    assert similarity.to_dense().shape == shape
    assert similarity.share_positive == 0.0
    assert similarity.transpose().shape == shape[::-1]


REFUSED = [
    (([0, 1], [0], (2, 3)), "indptr must have one entry more than the 2 queries, got 2 entries."),
    (([0, 1, 3], [0, 1], (2, 3)), "indptr must rise from 0 to the 2 positives, got 0 to 3 with 0 falls."),
    (([0, 3, 2], [0, 1], (2, 3)), "indptr must rise from 0 to the 2 positives, got 0 to 2 with 1 falls."),
    (([0, 1, 2], [0, 3], (2, 3)), "indices must be from 0 to 2, got 0 to 3."),
    (([0, 1, 2], [-1, 0], (2, 3)), "indices must be from 0 to 2, got -1 to 0."),
    (
        ([0, 1, 3], [2, 1, 1], (2, 3)),
        "indices must be increasing and without repetition within each query, "
        "got a fall or repetition in query 1.",
    ),
    (([0, 1], [0.0], (1, 3)), "indices must be a 1-d array of integers, got a 1-d array of float64."),
    (([0, 1], [0], (1, -3)), "shape must be two numbers (queries, items) of at least 0, got (1, -3)."),
    (([0, 1], [0], (1, 2, 3)), "shape must be two numbers (queries, items) of at least 0, got (1, 2, 3)."),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_wrong_positives_are_refused(arguments, message):
    with pytest.raises(InvalidArgument, match=f"^Similarity: {re.escape(message)}$"):
        Similarity(*arguments)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32, np.float64, bool])
def test_from_matrix_takes_signs_and_bools(dtype):
    similarity, dense = random_similarity()
    given = dense > 0 if dtype is bool else dense.astype(dtype)
    assert from_matrix(given) == similarity
    assert from_matrix(np.asfortranarray(given)) == similarity


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_matrix])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.float64])
def test_from_matrix_takes_sparse_ones(form, dtype):
    similarity, dense = random_similarity()
    assert from_matrix(form((dense > 0).astype(dtype))) == similarity


def test_from_matrix_ignores_stored_zeros_of_a_sparse_matrix():
    stored = sp.csr_array((np.array([1, 0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    assert from_matrix(stored).indices.tolist() == [0]
    assert stored.nnz == 2  # the argument is left alone


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        (
            [[0, 1]],
            InvalidArgument,
            "S must be +1/-1 or bool, got the value 0. For a 0/1 matrix give S == 1.",
        ),
        ([[1.0, np.nan]], InvalidArgument, "S must be +1/-1 or bool, got the value nan. For a 0/1"),
        ([1, -1], InvalidArgument, "S must be 2-d, queries by items, got 1-d of shape (2,)."),
        ([["a"]], InvalidType, "S must be +1/-1 or bool, got <U1."),
        (
            sp.csr_array([[2, 1]]),
            InvalidArgument,
            "a sparse S must hold ones or True where similar, got the value 2.",
        ),
        (
            sp.csr_array([[1j]]),
            InvalidType,
            "a sparse S must be 2-d with ones or True, got 2-d of complex128.",
        ),
    ],
)
def test_from_matrix_refuses_other_values(matrix, error, message):
    with pytest.raises(error, match=f"^from_matrix: {re.escape(message)}"):
        from_matrix(matrix)
