"""What is wrong is refused, naming argument, expectation and finding; a refused call leaves the old model whole."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

import asymhash as ah
from asymhash.errors import AsymhashError

from .tables import LEARNERS, N_FEATURES, NESTING, ROWS, SUPERVISED, classes, name_of, vectors

X = vectors()
Y = ah.similarity.labels(classes())
NEW = ah.similarity.from_matrix(np.where(np.arange(40)[:, None] % 4 == np.arange(6) % 4, 1, -1))


def with_entry(value, dtype=float):
    wrong = X.astype(dtype)
    wrong[3, 2] = value
    return wrong


MATRIX = "must be a 2-d array of shape (n_items, n_features)"
BAD_VECTORS = {
    "nan": (
        with_entry(np.nan),
        "must be finite, got NaN in row 3, column 2. Remove or fill such rows first.",
    ),
    "inf": (
        with_entry(-np.inf),
        "must be finite, got inf in row 3, column 2. Remove or fill such rows first.",
    ),
    "too large": (
        with_entry(1e200),
        "must hold numbers of at most 1e+100 in size, got 1e+200. Scale {name} down.",
    ),
    "1-d": (X[:, 0], f"{MATRIX}, got a 1-d array of shape (40,). Reshape your data: {{name}}.reshape(1, -1)"),
    "3-d": (X[None], f"{MATRIX}, got a 3-d array of shape (1, 40, 5)."),
    "0-d": (7.0, f"{MATRIX}, got a 0-d array of shape ()."),
    "None": (None, f"{MATRIX}, got a 0-d array of shape ()."),
    "ragged": ([[1.0], [1.0, 2.0]], f"{MATRIX}, got a list that NumPy cannot read"),
    "sparse": (sp.csr_array(X), f"{MATRIX}, got a sparse csr_array. Use {{name}}.toarray()."),
    "masked": (np.ma.masked_less(X, 0), f"{MATRIX}, got a masked array. Use {{name}}.filled(value)."),
    "object": (
        with_entry({}, object),
        "must hold real numbers, got an object array (float() argument must be",
    ),
    "object of text": (
        with_entry("a", object),
        "must hold real numbers, got an object array with text in it.",
    ),
    "text": (X.astype(str), "must hold real numbers, got dtype <U"),
    "dates": (np.zeros(X.shape, "M8[s]"), "must hold real numbers, got dtype datetime64[s]."),
    "complex": (X + 1j, "must hold real numbers, got dtype complex128."),
    "no features": (X[:, :0], "must have features, got 0 feature(s)"),
}
BAD_SIZES = {
    "empty": (X[:0], "must have at least 2 items, got 0"),
    "one item": (X[:1], "must have at least 2 items, got 1"),
}
BAD_LENGTHS = {
    0: "n_bits must be an integer from 1 to 1024, got 0.",
    -1: "n_bits must be an integer from 1 to 1024, got -1.",
    1025: "n_bits must be an integer from 1 to 1024, got 1025.",
    8.0: "n_bits must be an integer from 1 to 1024, got 8.0 of type float.",
    True: "n_bits must be an integer from 1 to 1024, got True of type bool.",
    "8": "n_bits must be an integer from 1 to 1024, got '8' of type str.",
    None: "n_bits must be an integer from 1 to 1024, got None of type NoneType.",
}
SEED = "random_state must be None, an integer of at least 0, a Generator or a RandomState, got "
SCALE = "loss_scale must be a finite number of at least 0.001 and of at most 1000, got "
BAD_PARAMETERS = [
    ("random_state", -1, SEED + "-1."),
    ("random_state", "a", SEED + "'a'."),
    ("random_state", True, SEED + "True."),
    ("pca", 0, "pca must be an integer of at least 1, got 0."),
    ("pca", 0.9, "pca must be an integer of at least 1, got 0.9 of type float."),
    ("loss_scale", 0, SCALE + "0."),
    ("loss_scale", 9e-4, SCALE + "0.0009."),
    ("loss_scale", 1001, SCALE + "1001."),
    ("loss_scale", 1e300, SCALE + "1e+300."),
    ("loss_scale", np.inf, SCALE + "inf."),
    ("beta", 0.0, "beta must be a finite number greater than 0 and less than 1, got 0."),
    ("beta", 1, "beta must be a finite number greater than 0 and less than 1, got 1."),
    ("beta", np.nan, "beta must be a finite number greater than 0 and less than 1, got nan."),
    ("beta", "half", "beta must be a finite number greater than 0 and less than 1, got 'half' of type str."),
    ("loss", "square", "loss must be one of 'sqrt_logistic', 'logistic', 'hinge', got 'square'."),
    ("loss", None, "loss must be one of 'sqrt_logistic', 'logistic', 'hinge', got None of type NoneType."),
    ("n_random_starts", -1, "n_random_starts must be an integer of at least 0, got -1."),
    ("n_sweeps", -1, "n_sweeps must be an integer of at least 0, got -1."),
    ("n_sweeps", 1.5, "n_sweeps must be an integer of at least 0, got 1.5 of type float."),
    ("n_alternations", 0, "n_alternations must be an integer of at least 1, got 0."),
    ("refine", 1, "refine must be True or False, got 1 of type int."),
    ("refine", "yes", "refine must be True or False, got 'yes' of type str."),
    ("n_epochs", 0, "n_epochs must be an integer of at least 1, got 0."),
    ("n_iterations", -1, "n_iterations must be an integer of at least 0, got -1."),
    ("n_anchors", 0, "n_anchors must be an integer of at least 1, got 0."),
    ("n_points", 0, "n_points must be an integer of at least 1, got 0."),
    ("recipe", "medium", "recipe must be one of 'small', 'large', 'best', got 'medium'."),
    ("rho", -1, "rho must be an integer from 0 to 3, got -1."),
    ("rho", 4, "rho must be an integer from 0 to 3, got 4."),
    ("weight_decay", -0.1, "weight_decay must be a finite number of at least 0 and of at most 38, got -0.1."),
    ("weight_decay", 1e6, "weight_decay must be a finite number of at least 0 and of at most 38, got 1e+06."),
    ("n_validation_epochs", 0, "n_validation_epochs must be an integer of at least 1, got 0."),
    ("n_batches", 0, "n_batches must be an integer of at least 1, got 0."),
    ("symmetric", 1, "symmetric must be True or False, got 1."),
]
NOTHING = "y must have similar and dissimilar pairs, got"
SQUARE = (
    ".fit: y must be a Similarity, labels (1-d), tags (2-d) or None, got a 40 x 40 matrix, which may be a similarity "
    "or tags. Say which: give similarity.from_matrix(y), or similarity.shared_labels(y) of asymhash."
)
BAD_TARGETS = {
    "no positives": (ah.similarity.from_matrix(-np.ones((40, 40))), f".fit: {NOTHING} no similar pair."),
    "all positives": (np.zeros(40, int), f".fit: {NOTHING} only similar pairs."),
    "wrong shape": (
        ah.similarity.labels(classes(39)),
        ".fit: y must be a similarity of 40 training queries x 40 items, got 39 x 39.",
    ),
    "short labels": (classes(39), ".fit: y must have one entry for each of the 40 items of X, got 39."),
    "short tags": (
        np.eye(39, dtype=int),
        ".fit: y must have one entry for each of the 40 items of X, got 39.",
    ),
    "a dense similarity": (classes()[:, None] == classes(), SQUARE),
    "a sparse similarity": (sp.csr_array(classes()[:, None] == classes()), SQUARE),
    "a similarity of signs": (Y.to_dense(), SQUARE),
    "as many tags as items": (np.eye(40, dtype=int)[::-1], SQUARE),
    "0-d": (3, ".fit: y must be a Similarity, labels (1-d), tags (2-d) or None, got a 0-d array."),
    "3-d": (
        np.ones((40, 1, 1)),
        ".fit: y must be a Similarity, labels (1-d), tags (2-d) or None, got a 3-d array.",
    ),
    "fractions": (np.full(40, 0.5), "labels: y must be integers, booleans or strings, got float64."),
    "nan": (np.full(40, np.nan), "labels: y must be integers, booleans or strings, got float64."),
    "objects": ([None] * 40, "labels: y must be integers, booleans or strings, got object."),
    "no 0/1 tags": (np.full((40, 2), 3), "shared_labels: tags must be a 0/1 matrix, got the value 3."),
    "ragged": (
        [[1], [1, 0]] * 20,
        ".fit: y must be a Similarity, labels (1-d), tags (2-d) or None, got a list",
    ),
}


def refused(call, message):
    with pytest.raises(AsymhashError, match="^" + re.escape(message)) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, (ValueError, TypeError))


def fitted(row):
    hasher = row.make().fit(X, classes())
    return hasher, (vars(hasher).copy(), hasher.encode_queries(X))


def assert_unchanged(hasher, before):
    state, codes = before
    assert {name: value for name, value in vars(hasher).items() if name.endswith("_") or name[0] == "_"} == {
        name: value for name, value in state.items() if name.endswith("_") or name[0] == "_"
    }
    assert hasher.encode_queries(X) == codes


@pytest.mark.parametrize("case", [*BAD_VECTORS, *BAD_SIZES])
@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_bad_vectors_in_fit(row, case):
    wrong, message = (BAD_VECTORS | BAD_SIZES)[case]
    hasher, before = fitted(row)
    refused(lambda: hasher.fit(wrong, classes()), f"{row.name}.fit: X {message.format(name='X')}")
    assert_unchanged(hasher, before)
    if row.learns and case not in ("one item", "None"):
        if case == "empty":
            message = "must have at least 1 item, got 0"
        refused(
            lambda: hasher.fit(X, queries=wrong), f"{row.name}.fit: queries {message.format(name='queries')}"
        )
        assert_unchanged(hasher, before)


@pytest.mark.parametrize("call", ["encode_queries", "encode_database", "project", "transform"])
@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_bad_vectors_in_encoding(row, call):
    hasher, before = fitted(row)
    asked = "encode_queries" if call == "transform" else call
    for wrong, message in BAD_VECTORS.values():
        refused(
            lambda wrong=wrong: getattr(hasher, call)(wrong),
            f"{row.name}.{asked}: X {message.format(name='X')}",
        )
    for width in (N_FEATURES - 1, N_FEATURES + 1):
        message = (
            f"{row.name}.{asked}: X must have 5 features, got {width}. "
            f"X has {width} features, but {row.name} is expecting 5 features as input."
        )
        refused(lambda width=width: getattr(hasher, call)(np.ones((2, width))), message)
    assert_unchanged(hasher, before)
    assert len(getattr(hasher, call)(X[:0])) == 0


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_bad_parameters(row):
    hasher, before = fitted(row)
    old = hasher.get_params()
    wrong = [("n_bits", value, message) for value, message in BAD_LENGTHS.items()]
    wrong += [case for case in BAD_PARAMETERS if case[0] in old]
    assert len(wrong) >= 10
    for name, value, message in wrong:
        hasher.set_params(**{**old, name: value})
        refused(lambda: hasher.fit(X, classes()), f"{row.name}: {message}")
        hasher.set_params(**old)
        assert_unchanged(hasher, before)


def test_every_parameter_is_refused_somewhere():
    known = {name for row in ROWS for name in row.make().get_params()} | set(ah.MatrixCodes().get_params())
    assert known - {"n_bits"} == {name for name, _, _ in BAD_PARAMETERS}


@pytest.mark.parametrize("case", BAD_TARGETS)
@pytest.mark.parametrize("row", SUPERVISED, ids=name_of)
def test_bad_targets(row, case):
    wrong, message = BAD_TARGETS[case]
    hasher, before = fitted(row)
    refused(lambda: hasher.fit(X, wrong), (row.name if message[0] == "." else "") + message)
    assert_unchanged(hasher, before)


@pytest.mark.parametrize("row", LEARNERS, ids=name_of)
def test_bad_queries_and_callbacks(row):
    hasher, before = fitted(row)
    refused(lambda: hasher.fit(X, queries=X[:, :4]), f"{row.name}.fit: queries must have 5 features, got 4.")
    refused(
        lambda: hasher.fit(X, Y, queries=X[:9]),
        f"{row.name}.fit: y must be a similarity of 9 training queries x 40 items, got 40 x 40.",
    )
    message = (
        f"{row.name}.fit: y must be a Similarity or None where queries are given, got a ndarray. "
        "Make one by asymhash.similarity.labels(y_queries, y_database) or shared_labels."
    )
    refused(lambda: hasher.fit(X, classes(), queries=X), message)
    refused(
        lambda: hasher.fit(X, Y, callback="bar"),
        f"{row.name}.fit: callback must be callable or None, got a str.",
    )
    assert_unchanged(hasher, before)


@pytest.mark.parametrize("row", LEARNERS, ids=name_of)
def test_a_fit_that_is_interrupted_leaves_the_old_model(row):
    hasher, before = fitted(row)

    def interrupt(record):
        if record.n_bits == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hasher.fit(vectors(n_features=4), Y, callback=interrupt)
    assert_unchanged(hasher, before)


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_truncate(row):
    hasher, before = fitted(row)
    for wrong, found in ((0, "0"), (4, "4"), (2.0, "2.0 of type float"), (True, "True of type bool")):
        message = f"{row.name}.truncate: n_bits must be an integer from 1 to 3, got {found}."
        refused(lambda wrong=wrong: hasher.truncate(wrong), message)
    if row not in NESTING:
        message = (
            f"{row.name}.truncate: the shorter models of {row.name} are not part of the longer one. Fit again"
        )
        with pytest.raises(ah.errors.UnsupportedOperation, match="^" + re.escape(message)):
            hasher.truncate(2)
    assert_unchanged(hasher, before)


def test_methods_that_have_at_most_as_many_bits_as_features():
    rows = [row for row in ROWS if row.at_most_n_features]
    assert rows
    for row in rows:
        message = (
            f"{row.name}: n_bits must be at most the number of features (n_features=5), got 6. "
            "Ask for fewer bits, or use a method without this limit."
        )
        refused(lambda row=row: row.make(6).fit(X), message)


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_new_items_with_similarities(row):
    hasher, before = fitted(row)
    if not row.free:
        message = (
            f"{row.name}.encode_database: similarity is for a model with free database codes, got a model whose "
            "database side is a map or was left out. Call it without similarity."
        )
        with pytest.raises(ah.errors.UnsupportedOperation, match="^" + re.escape(message)):
            hasher.encode_database(X[:6], NEW)
        return
    assert len(hasher.encode_database(X[:6], NEW)) == 6
    where = f"{row.name}.encode_database: similarity must"
    refused(lambda: hasher.encode_database(X[:6], classes(6)), f"{where} be a Similarity, got a ndarray.")
    for items, similarity, found in (
        (X[:5], NEW, "shape (40, 5) (training queries, new items), got (40, 6)."),
        (X[:6], NEW.rows(slice(0, 39)), "shape (40, 6) (training queries, new items), got (39, 6)."),
    ):
        refused(lambda i=items, s=similarity: hasher.encode_database(i, s), f"{where} have the {found}")
    for wrong, message in BAD_VECTORS.values():
        message = f"{row.name}.encode_database: X {message.format(name='X')}"
        refused(lambda wrong=wrong: hasher.encode_database(wrong, NEW), message)
    assert_unchanged(hasher, before)


@pytest.mark.parametrize("symmetric", [False, True])
def test_matrix_codes(symmetric):
    codes = ah.MatrixCodes(3, symmetric=symmetric, random_state=0).fit(Y)
    model = codes.model_
    old = codes.get_params()
    wrong = [("n_bits", value, message) for value, message in BAD_LENGTHS.items()]
    wrong += [case for case in BAD_PARAMETERS if case[0] in old]
    for name, value, message in wrong:
        refused(lambda p={**old, name: value}: codes.set_params(**p).fit(Y), f"MatrixCodes: {message}")
        codes.set_params(**old)
    nothing = "MatrixCodes.fit: similarity must have similar and dissimilar pairs, got"
    for similarity, message in (
        (np.eye(3), "MatrixCodes.fit: similarity must be a Similarity, got a ndarray. Make one by asymhash."),
        (ah.similarity.from_matrix(-np.ones((3, 3))), f"{nothing} no similar pair."),
        (ah.similarity.from_matrix(np.ones((3, 3))), f"{nothing} only similar pairs."),
    ):
        refused(lambda similarity=similarity: codes.fit(similarity), message)
    refused(
        lambda: codes.fit(Y, callback=3), "MatrixCodes.fit: callback must be callable or None, got a int."
    )
    if symmetric:
        message = "MatrixCodes.fit: similarity must be square for symmetric codes, got 40 x 6."
        refused(lambda: codes.fit(NEW), message)
        remedy = "Leave symmetric out, for a code of each side."
        for S, found in (
            ([[1, -1, -1], [-1, 1, 1], [-1, -1, 1]], "S[1, 2] = +1 and S[2, 1] = -1"),
            ([[1, -1, -1], [-1, 1, -1], [1, -1, 1]], "S[0, 2] = -1 and S[2, 0] = +1"),
        ):
            message = (
                f"MatrixCodes.fit: similarity must be symmetric for symmetric codes, got {found}. {remedy}"
            )
            refused(lambda S=S: codes.fit(ah.similarity.from_matrix(S)), message)
    where = "MatrixCodes.encode_database: similarity must"
    for similarity in (None, X):
        name = type(similarity).__name__
        refused(lambda s=similarity: codes.encode_database(s), f"{where} be a Similarity, got a {name}.")
    refused(
        lambda: codes.encode_database(Y.rows([0])),
        f"{where} have the shape (40, 40) (training queries, new items), got (1, 40).",
    )
    with pytest.raises(
        ah.errors.UnsupportedOperation, match="expected a model with a query map, got one without"
    ):
        codes.model_.encode_queries(X)
    assert codes.model_ is model
