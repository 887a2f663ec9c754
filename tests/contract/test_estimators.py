"""Every method that takes vectors keeps scikit-learn's manners."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import asymhash as ah

from .tables import ROWS, classes, name_of, vectors


def test_the_table_has_every_method_that_takes_vectors():
    public = {name for name in ah.__all__ if hasattr(getattr(ah, name), "fit")}
    assert len({(row.name, row.nests) for row in ROWS}) == len(ROWS) >= 5
    assert {row.name for row in ROWS} == public - {"MatrixCodes"}


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_scikit_learn_checks(row):
    # One bit: some checks have data of one feature, and ITQ gives no more bits than features.
    hasher = row.make(1 if row.at_most_n_features else 2)
    results = check_estimator(hasher, on_skip=None, on_fail=None)
    assert len(results) > 40
    failed = [
        f"{r['check_name']}: {r['exception']!r}" for r in results if r["status"] not in ("passed", "skipped")
    ]
    assert failed == []
    assert {r["check_name"] for r in results if r["status"] == "skipped"} == set(row.not_run)
    assert all(row.not_run.values())


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_pipeline_pickle_and_clone(row):
    X = vectors()
    pipeline = make_pipeline(StandardScaler(), row.make()).fit(X, classes())
    packed = pipeline.transform(X)
    assert (packed.shape, packed.dtype) == ((40, 1), np.uint8)
    assert list(pipeline[-1].get_feature_names_out()) == [f"{row.name.lower()}0"]
    assert np.array_equal(pickle.loads(pickle.dumps(pipeline)).transform(X), packed)
    assert np.array_equal(clone(pipeline).fit(X, classes()).transform(X), packed)
    assert np.array_equal(row.make().fit(X, classes()).transform(X), row.make().fit_transform(X, classes()))


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_unfitted_methods_say_so(row):
    X = vectors()
    for call in (
        lambda h: h.encode_queries(X),
        lambda h: h.encode_database(X),
        lambda h: h.project(X),
        lambda h: h.transform(X),
        lambda h: h.truncate(1),
        lambda h: h.database_codes_,
    ):
        with pytest.raises(NotFittedError, match=f"This {row.name} instance is not fitted yet"):
            call(row.make())


def test_unfitted_matrix_codes_say_so():
    for call in (
        lambda h: h.encode_database(ah.similarity.labels([0, 1])),
        lambda h: h.truncate(1),
        lambda h: h.query_codes_,
        lambda h: h.database_codes_,
    ):
        with pytest.raises(NotFittedError, match="This MatrixCodes instance is not fitted yet"):
            call(ah.MatrixCodes(2))


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_data_frames(row):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: data frames are not checked")
    X, y = vectors(), classes()
    frame = pandas.DataFrame(X, columns=list("abcde"))
    hasher = row.make().fit(frame, y)
    assert list(hasher.feature_names_in_) == list("abcde")
    wanted = row.make().fit(X, y)
    assert hasher.database_codes_ == wanted.database_codes_
    assert hasher.encode_queries(frame) == hasher.encode_queries(X) == wanted.encode_queries(X)
    with pytest.raises(
        ah.errors.InvalidArgument,
        match=rf"^{row.name}.encode_queries: X must have the columns that fit has seen, got others. The feature names",
    ):
        hasher.encode_queries(frame.rename(columns={"a": "z"}))
    with pytest.raises(
        ah.errors.InvalidType, match=rf"^{row.name}.fit: X must have column names that are all"
    ):
        hasher.fit(frame.rename(columns={"a": 1}), y)
    assert hasher.encode_queries(frame) == wanted.encode_queries(X)
    if row.nests:
        assert list(hasher.truncate(2).feature_names_in_) == list("abcde")
    assert not hasattr(hasher.fit(X, y), "feature_names_in_")
