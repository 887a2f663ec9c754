"""What every argument check lets through, and the words in which it refuses the rest."""

import math

import numpy as np
import pytest
import scipy.sparse

from asymhash import errors
from asymhash.checks import check_choice, check_integer, check_number, check_vectors
from asymhash.errors import InvalidArgument, InvalidType

CALL = {"where": "LinV", "name": "n_bits"}


def refusal(kind, check, *args, **kwargs):
    with pytest.raises(kind) as error:
        check(*args, **kwargs)
    assert isinstance(error.value, errors.AsymhashError)
    return str(error.value)


@pytest.mark.parametrize("value", [1, 8, 1024, np.int8(5), np.uint64(7), np.int64(1024)])
def test_integers_of_every_kind_are_taken(value):
    checked = check_integer(value, **CALL, low=1, high=1024)
    assert type(checked) is int
    assert checked == value


@pytest.mark.parametrize(
    ("value", "kind", "found"),
    [
        (0, InvalidArgument, "0"),
        (np.int32(-3), InvalidArgument, "-3"),
        (1025, InvalidArgument, "1025"),
        (True, InvalidType, "True of type bool"),
        (np.True_, InvalidType, "np.True_ of type bool"),
        (8.0, InvalidType, "8.0 of type float"),
        ("8", InvalidType, "'8' of type str"),
        (None, InvalidType, "None of type NoneType"),
        (list(range(100)), InvalidType, "a list"),
    ],
)
def test_other_integers_are_refused(value, kind, found):
    message = refusal(kind, check_integer, value, **CALL, low=1, high=1024)
    assert message == f"LinV: n_bits must be an integer from 1 to 1024, got {found}."


def test_an_integer_without_upper_bound():
    assert check_integer(10**12, **CALL, low=1) == 10**12
    message = refusal(InvalidArgument, check_integer, 0, **CALL, low=1)
    assert message == "LinV: n_bits must be an integer of at least 1, got 0."


@pytest.mark.parametrize("value", [0.5, 1, np.float32(0.25), np.int16(1), math.nextafter(0, 1)])
def test_numbers_of_every_kind_are_taken(value):
    checked = check_number(value, where="LinV", name="beta", above=0, high=1)
    assert type(checked) is float
    assert checked == value


@pytest.mark.parametrize(
    ("value", "kind", "found"),
    [
        (0.0, InvalidArgument, "0"),
        (1.5, InvalidArgument, "1.5"),
        (math.nan, InvalidArgument, "nan"),
        (math.inf, InvalidArgument, "inf"),
        (False, InvalidType, "False of type bool"),
        ("0.5", InvalidType, "'0.5' of type str"),
        (1j, InvalidType, "1j of type complex"),
        (np.array([0.5]), InvalidType, "array([0.5]) of type ndarray"),
    ],
)
def test_other_numbers_are_refused(value, kind, found):
    message = refusal(kind, check_number, value, where="LinV", name="beta", above=0, high=1)
    assert message == f"LinV: beta must be a finite number greater than 0 and of at most 1, got {found}."


def test_number_bounds_are_each_named():
    assert check_number(2, where="f", name="x", low=2) == 2.0
    message = refusal(InvalidArgument, check_number, 1, where="f", name="x", low=2)
    assert message == "f: x must be a finite number of at least 2, got 1."
    message = refusal(InvalidArgument, check_number, 3, where="f", name="x", below=3)
    assert message == "f: x must be a finite number less than 3, got 3."
    message = refusal(InvalidArgument, check_number, -math.inf, where="f", name="x")
    assert message == "f: x must be a finite number, got -inf."


def test_choices_are_listed():
    choices = ("pooled", "mean_kth")
    assert check_choice("mean_kth", where="neighbors", name="rule", choices=choices) == "mean_kth"
    message = refusal(InvalidArgument, check_choice, "mean", where="neighbors", name="rule", choices=choices)
    assert message == "neighbors: rule must be one of 'pooled', 'mean_kth', got 'mean'."
    message = refusal(InvalidType, check_choice, None, where="neighbors", name="rule", choices=choices)
    assert message == "neighbors: rule must be one of 'pooled', 'mean_kth', got None of type NoneType."


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8", "i1", "i8", "u1", "u8"])
def test_vectors_keep_dtype_and_memory(dtype):
    X = np.arange(12).reshape(3, 4).astype(dtype)
    checked = check_vectors(X, where="LinV.fit", name="X")
    assert checked.dtype == np.dtype(dtype)
    assert np.shares_memory(checked, X)


def test_vectors_may_be_read_only_or_strided_or_mapped(tmp_path):
    X = np.arange(40.0).reshape(5, 8)
    X.flags.writeable = False
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for view in (X, X[::2, ::-1], X.T, mapped):
        checked = check_vectors(view, where="LinV.fit", name="X")
        assert np.shares_memory(checked, view)
        np.testing.assert_array_equal(checked, view)


def test_lists_booleans_and_objects_become_numbers():
    assert check_vectors([[1, 2.5]], where="f", name="X").tolist() == [[1, 2.5]]
    bools = check_vectors(np.array([[True, False]]), where="f", name="X")
    assert (bools.dtype, bools.tolist()) == (np.uint8, [[1, 0]])
    objects = check_vectors(np.array([[1, 2.5]], dtype=object), where="f", name="X")
    assert (objects.dtype, objects.tolist()) == (np.float64, [[1, 2.5]])


MATRIX = "X must be a 2-d array of shape (n_items, n_features)"
NUMBERS = "X must hold real numbers"
RESHAPE = "Reshape your data: X.reshape(1, -1) is one item."
CONVERT = "Convert X to float32 or float64 first."


@pytest.mark.parametrize(
    ("X", "kind", "message"),
    [
        (np.zeros(3), InvalidArgument, f"{MATRIX}, got a 1-d array of shape (3,). {RESHAPE}"),
        (7.0, InvalidArgument, f"{MATRIX}, got a 0-d array of shape ()."),
        (np.zeros((2, 2, 2)), InvalidArgument, f"{MATRIX}, got a 3-d array of shape (2, 2, 2)."),
        (np.zeros((0, 3)), InvalidArgument, "X must have at least 1 item, got 0 (n_samples = 0)."),
        (
            np.zeros((4, 0)),
            InvalidArgument,
            "X must have features, got 0 feature(s) (shape=(4, 0)) while a minimum of 1 is required.",
        ),
        (
            scipy.sparse.csr_array(np.eye(2)),
            InvalidType,
            f"{MATRIX}, got a sparse csr_array. Use X.toarray().",
        ),
        (
            np.ma.masked_equal([[1, 2]], 2),
            InvalidType,
            f"{MATRIX}, got a masked array. Use X.filled(value).",
        ),
        (
            np.ones((2, 2)) * 1j,
            InvalidArgument,
            f"{NUMBERS}, got dtype complex128. Complex data not supported.",
        ),
        (np.array([["a"]]), InvalidType, f"{NUMBERS}, got dtype <U1."),
        (np.zeros((1, 1), "M8[s]"), InvalidType, f"{NUMBERS}, got dtype datetime64[s]."),
        (
            np.array([[1, "2"]], dtype=object),
            InvalidType,
            f"{NUMBERS}, got an object array with text in it. {CONVERT}",
        ),
        (
            np.array([[1, {}]], dtype=object),
            InvalidType,
            f"{NUMBERS}, got an object array "
            f"(float() argument must be a string or a real number, not 'dict'). {CONVERT}",
        ),
        (
            np.array([[1.0, np.nan, np.inf]]),
            InvalidArgument,
            "X must be finite, got NaN in row 0, column 1. Remove or fill such rows first.",
        ),
        (
            np.array([[1, 2], [3, -np.inf]], dtype=np.float16),
            InvalidArgument,
            "X must be finite, got inf in row 1, column 1. Remove or fill such rows first.",
        ),
        (
            np.array([[1, None]], dtype=object),
            InvalidArgument,
            "X must be finite, got NaN in row 0, column 1. Remove or fill such rows first.",
        ),
        (
            np.array([[1.0, float("nan")]], dtype=object),
            InvalidArgument,
            "X must be finite, got NaN in row 0, column 1. Remove or fill such rows first.",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_wrong_vectors_are_refused_by_name(X, kind, message):
    assert refusal(kind, check_vectors, X, where="LinV.fit", name="X") == f"LinV.fit: {message}"


def test_ragged_lists_are_refused():
    message = refusal(InvalidType, check_vectors, [[1, 2], [3]], where="LinV.fit", name="X")
    assert message.startswith(f"LinV.fit: {MATRIX}, got a list that NumPy cannot read (")


def test_the_number_of_items_and_features_is_checked():
    X = np.zeros((1, 3))
    message = refusal(InvalidArgument, check_vectors, X, where="ITQ.fit", name="X", min_items=2)
    assert message == "ITQ.fit: X must have at least 2 items, got 1 (n_samples = 1)."
    message = refusal(InvalidArgument, check_vectors, X, where="ITQ.project", name="X", n_features=4)
    assert message == (
        "ITQ.project: X must have 4 features, got 3. "
        "X has 3 features, but ITQ is expecting 4 features as input."
    )


@pytest.mark.parametrize("bad_row", [0, 1, 8, 9, 21])
def test_every_block_is_searched_for_non_finite_values(monkeypatch, bad_row):
    monkeypatch.setattr("asymhash.checks._BLOCK_ELEMENTS", 9)  # three rows of three
    X = np.zeros((22, 3))
    assert check_vectors(X, where="f", name="X") is X
    X[bad_row, 2] = np.nan
    message = refusal(InvalidArgument, check_vectors, X, where="f", name="X")
    assert f"got NaN in row {bad_row}, column 2." in message


def test_errors_are_also_what_python_would_raise():
    pairs = {
        errors.InvalidArgument: ValueError,
        errors.InvalidType: TypeError,
        errors.DamagedFile: OSError,
        errors.UnsupportedVersion: OSError,
        errors.MissingData: FileNotFoundError,
        errors.MissingExtra: ImportError,
        errors.UnsupportedOperation: Exception,
    }
    for ours, theirs in pairs.items():
        assert issubclass(ours, errors.AsymhashError)
        assert issubclass(ours, theirs)


def test_error_text_is_where_expected_found_remedy():
    assert str(errors.invalid("f", "x must be 1", "2")) == "f: x must be 1, got 2."
    assert (
        str(errors.invalid_type("f", "x must be 1", "a str", "Give 1."))
        == "f: x must be 1, got a str. Give 1."
    )


@pytest.mark.parametrize("dtype", [">f2", "<f2", "f4", "f8"])
def test_every_float_that_is_not_finite_is_found(dtype):
    X = np.ones((300, 1000), dtype=dtype)
    X[7, 3] = np.finfo("f2").max
    assert check_vectors(X, where="fit", name="X") is X
    for value, kind in ((np.nan, "NaN"), (-np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")):
        for row, column in ((0, 0), (131, 71), (299, 999)):
            wrong = X.copy()
            wrong[row, column] = value
            with pytest.raises(InvalidArgument, match=f"got {kind} in row {row}, column {column}"):
                check_vectors(wrong, where="fit", name="X")
            with pytest.raises(InvalidArgument, match=f"got {kind} in row {row}, column 0"):
                check_vectors(wrong[:, column::2], where="fit", name="X")
