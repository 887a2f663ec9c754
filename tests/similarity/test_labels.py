"""Similarity from labels and tags, against all pairs by loops."""

import re
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from asymhash.errors import InvalidArgument, InvalidType
from asymhash.similarity import labels, shared_labels

QUERY_LABELS = {
    "ints": ([3, 1, 2, 3, 9], [1, 3, 3, 7, 2, 1]),
    "strings": (["b", "a", "zz"], ["a", "b", "b", "longer"]),
    "bools": ([True, False], [False, False, True]),
    "whole floats": ([1.0, 2.0], [2, 1, 1]),
    "objects": (np.array(["x", "y"], dtype=object), ["y", "x"]),
    "nothing in common": ([1, 2], [3, 4]),
}


@pytest.mark.parametrize("kind", QUERY_LABELS)
def test_equal_labels_are_similar(kind):
    y, y_database = QUERY_LABELS[kind]
    wanted = [[1 if a == b else -1 for b in y_database] for a in y]
    assert labels(y, y_database).to_dense().tolist() == wanted
    assert labels(y).to_dense().tolist() == [[1 if a == b else -1 for b in y] for a in y]
    assert labels(y).n_positives > 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[1], [2]],), InvalidArgument, "y must be 1-d, one label for each item, got 2-d of shape (2, 1)."),
        (([],), InvalidArgument, "y must have at least one label, got none."),
        (([0.5, 1.0],), InvalidType, "y must be integers, booleans or strings, got float64."),
        (([np.nan, 1.0],), InvalidType, "y must be integers, booleans or strings, got float64."),
        ((np.array([1, None]),), InvalidType, "y must be integers, booleans or strings, got object."),
        (
            ([1e300, 2e300, 1e300],),
            InvalidArgument,
            "y of float64 must be at most 2^53 in size, beyond which integers are rounded, got 2e+300. "
            "Give integers or strings.",
        ),
        (
            ([1, 2], [1.0, -(2.0**53) - 2]),
            InvalidArgument,
            "y_database of float64 must be at most 2^53 in size, beyond which integers are rounded, "
            "got 9.0072e+15. Give integers or strings.",
        ),
        (
            (np.array([2**24 + 2, 1], dtype=np.float32),),
            InvalidArgument,
            "y of float32 must be at most 2^24 in size, beyond which integers are rounded, got 1.67772e+07. "
            "Give integers or strings.",
        ),
        ((["a"], [1]), InvalidArgument, "y_database must be of the kind of y, <U1, got int64."),
    ],
)
def test_wrong_labels_are_refused(arguments, error, message):
    with pytest.raises(error, match=f"^labels: {re.escape(message)}$"):
        labels(*arguments)


@pytest.mark.parametrize(("dtype", "digits"), [(np.float64, 53), (np.float32, 24), (np.float16, 11)])
def test_whole_floats_are_taken_as_far_as_they_are_exact(dtype, digits):
    y = np.array([2.0**digits, 2.0**digits - 1, -(2.0**digits), 2.0**digits], dtype=dtype)
    assert labels(y).to_dense().tolist() == [[1 if a == b else -1 for b in y] for a in y]
    assert labels(y).n_positives == 6


def tags(n: int, seed: int) -> np.ndarray:
    matrix = (np.random.default_rng(seed).random((n, 9)) < 0.3).astype(np.uint8)
    matrix[1] = 0  # an item without tags
    return matrix


@pytest.mark.parametrize("at_least", [1, 2, 3])
@pytest.mark.parametrize("block_pairs", [1 << 24, 20, 1])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_items_that_share_enough_tags_are_similar(monkeypatch, at_least, block_pairs, form):
    # The package shows the function of the same name, so the module is reached by its path.
    monkeypatch.setattr(sys.modules["asymhash.similarity.labels"], "_BLOCK_PAIRS", block_pairs)
    queries, items = tags(12, 0), tags(17, 1)
    for database in (None, items):
        other = queries if database is None else items
        wanted = [[1 if sum(a & b) >= at_least else -1 for b in other] for a in queries]
        found = shared_labels(form(queries), None if database is None else form(items), at_least=at_least)
        assert found.n_positives > 0
        assert found.to_dense().tolist() == wanted


def test_shared_labels_takes_bools_and_leaves_stored_zeros_alone():
    wanted = shared_labels(tags(12, 0))
    assert shared_labels(tags(12, 0) > 0) == wanted
    stored = sp.csr_array(tags(12, 0).astype(float))
    stored.data[:] = 0.0
    assert shared_labels(stored).n_positives == 0
    assert wanted.origin == {"kind": "shared_labels", "at_least": 1}


@pytest.mark.parametrize(
    ("arguments", "at_least", "error", "message"),
    [
        (([[0, 2]],), 1, InvalidArgument, "tags must be a 0/1 matrix, got the value 2."),
        (([0, 1],), 1, InvalidArgument, "tags must be 2-d, items by tags, got 1-d."),
        (([["a"]],), 1, InvalidType, "tags must be a 0/1 matrix, got <U1."),
        ((np.ones((0, 3)),), 1, InvalidArgument, "tags must have at least one item, got none."),
        (
            ([[1, 0]], [[1]]),
            1,
            InvalidArgument,
            "tags_database must have the 2 tags of the queries, got 1 tags.",
        ),
        (([[1]],), 0, InvalidArgument, "at_least must be an integer of at least 1, got 0."),
    ],
)
def test_wrong_tags_are_refused(arguments, at_least, error, message):
    with pytest.raises(error, match=f"^shared_labels: {re.escape(message)}$"):
        shared_labels(*arguments, at_least=at_least)
