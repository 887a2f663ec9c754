"""Exact search among BinaryCodes: what users call, and what it refuses."""

import dataclasses

import numpy as np
import pytest

import asymhash as ah
from asymhash import BinaryCodes
from asymhash.errors import InvalidArgument, InvalidType


def random_codes(n_items, n_bits, seed=0):
    return BinaryCodes.from_bools(np.random.default_rng(seed).random((n_items, n_bits)) < 0.5)


def naive_distances(queries, database):
    return (queries.to_bools()[:, None, :] != database.to_bools()[None, :, :]).sum(axis=2)


@pytest.mark.parametrize("n_bits", [1, 12, 64, 100, 1024])
@pytest.mark.parametrize("n_threads", [None, 1, 2])
def test_search_equals_naive_loops(n_bits, n_threads):
    queries, database = random_codes(6, n_bits), random_codes(90, n_bits, seed=1)
    distances = naive_distances(queries, database)
    nearest = ah.nearest_codes(queries, database, 7, n_threads=n_threads)
    within = ah.codes_within(queries, database, n_bits // 2, n_threads=n_threads)
    counts = ah.count_distances(queries, database, n_threads=n_threads)
    for q, row in enumerate(distances):
        order = sorted(range(90), key=lambda item, row=row: (row[item], item))
        assert nearest.ids[q].tolist() == order[:7]
        assert nearest.distances[q].tolist() == row[order[:7]].tolist()
        near = [item for item in order if row[item] <= n_bits // 2]
        assert near
        assert within.ids_of(q).tolist() == near
        assert counts[q].tolist() == np.bincount(row, minlength=n_bits + 1).tolist()
    assert (np.diff(within.offsets) == counts[:, : n_bits // 2 + 1].sum(axis=1)).all()


def test_a_filter_hides_items_and_rows_are_padded():
    codes = random_codes(100, 20)
    allowed = np.zeros(100, dtype=bool)
    allowed[[3, 70, 99]] = True
    found = ah.nearest_codes(codes[:2], codes, 5, allowed=allowed)
    assert sorted(found.ids[0].tolist()) == [-1, -1, 3, 70, 99]
    assert found.distances[:, 3:].tolist() == [[21, 21]] * 2
    assert found.distances[:, :3].max() <= 20
    assert sorted(ah.codes_within(codes[:1], codes, 20, allowed=allowed.tolist()).ids) == [3, 70, 99]
    assert ah.count_distances(codes[:1], codes, allowed=allowed).sum() == 3


def test_fewer_items_than_k_and_none_at_all():
    codes = random_codes(3, 8)
    assert ah.nearest_codes(codes, codes, 10).ids.shape == (3, 3)
    assert ah.nearest_codes(codes[:0], codes, 10).ids.shape == (0, 3)
    assert ah.nearest_codes(codes, codes[:0], 10, allowed=[]).ids.shape == (3, 0)
    assert ah.codes_within(codes, codes[:0], 8).offsets.tolist() == [0, 0, 0, 0]


def test_results_are_frozen_values():
    codes = random_codes(5, 8)
    nearest, within = ah.nearest_codes(codes, codes, 2), ah.codes_within(codes, codes, 3)
    for array in (nearest.ids, nearest.distances, within.offsets, within.ids, within.distances):
        assert not array.flags.writeable
    with pytest.raises(dataclasses.FrozenInstanceError):
        nearest.ids = within.ids
    with pytest.raises(InvalidArgument) as error:
        within.ids_of(5)
    assert str(error.value) == "NearbyCodes.ids_of: query must be an integer from 0 to 4, got 5."


CODES = random_codes(5, 8)
FILTER = "allowed must be a bool array of shape (5,), one for each item of the database"


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        (
            {"queries": CODES.words},
            InvalidType,
            "queries must be BinaryCodes, got a ndarray. "
            "BinaryCodes.from_signs, from_bools and from_bytes make them.",
        ),
        (
            {"database": random_codes(5, 9)},
            InvalidArgument,
            "queries and database must have the same number of bits, got 8 and 9. "
            "Encode both with the same model.",
        ),
        (
            {"allowed": [0, 3]},
            InvalidType,
            f"{FILTER}, got dtype int64. "
            "From ids: allowed = np.zeros(len(database), bool); allowed[ids] = True.",
        ),
        ({"allowed": [True]}, InvalidArgument, f"{FILTER}, got shape (1,)."),
        ({"n_threads": -1}, InvalidArgument, "n_threads must be an integer from 1 to 1024, got -1."),
    ],
)
def test_bad_input_is_refused_by_name(changes, kind, message):
    arguments = {"queries": CODES, "database": CODES} | changes
    queries, database = arguments.pop("queries"), arguments.pop("database")
    calls = {
        "nearest_codes": lambda: ah.nearest_codes(queries, database, 2, **arguments),
        "codes_within": lambda: ah.codes_within(queries, database, 2, **arguments),
        "count_distances": lambda: ah.count_distances(queries, database, **arguments),
    }
    for name, call in calls.items():
        with pytest.raises(kind) as error:
            call()
        assert str(error.value) == f"{name}: {message}"


def test_k_and_radius_are_checked_by_name():
    with pytest.raises(InvalidArgument) as error:
        ah.nearest_codes(CODES, CODES, 0)
    assert str(error.value) == "nearest_codes: k must be an integer of at least 1, got 0."
    with pytest.raises(InvalidArgument) as error:
        ah.codes_within(CODES, CODES, -1)
    assert str(error.value) == "codes_within: radius must be an integer of at least 0, got -1."
