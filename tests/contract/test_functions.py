"""The table of public functions that are no methods: each bad call is refused by name, in one line."""

import inspect
import re

import numpy as np
import pytest
import scipy.sparse as sp

import asymhash as ah
from asymhash import datasets, evaluate, similarity
from asymhash.errors import AsymhashError
from asymhash.similarity import Similarity

SIGNS = np.where(np.arange(12).reshape(4, 3) % 2 == 0, 1, -1)
Q, D = ah.BinaryCodes.from_signs(SIGNS[:2]), ah.BinaryCodes.from_signs(SIGNS)
S = similarity.from_matrix(np.where(np.eye(2, 4) > 0, 1, -1))
H = evaluate.distance_histograms(Q, D, S)
POINTS = np.arange(12.0).reshape(6, 2)

RAGGED = "got a list that NumPy cannot read (setting an array element with a sequence."
MADE = "BinaryCodes.from_signs, from_bools and from_bytes make them."
SEED = "random_state must be None, an integer of at least 0, a Generator or a RandomState, got"
SHAPE = "shape must be two numbers (queries, items) of at least 0, got"
OTHERS = "query codes, database codes and a similarity must be given, or distance histograms alone, got"

# What takes codes of both sides and a similarity, and what it says of each wrong call.
OF_CODES = {
    "a dense similarity": (
        (Q, D, S.to_dense()),
        "similarity must be a Similarity, got a ndarray. asymhash.similarity makes one, from_matrix(S) of a matrix.",
    ),
    "a sparse similarity": ((Q, D, S.to_csr()), "similarity must be a Similarity, got a csr_array."),
    "signs of queries": ((SIGNS[:2], D, S), f"query_codes must be BinaryCodes, got a ndarray. {MADE}"),
    "signs of items": ((Q, SIGNS, S), f"database_codes must be BinaryCodes, got a ndarray. {MADE}"),
    "bytes": ((Q.to_bytes(), D.to_bytes(), S), "query_codes must be BinaryCodes, got a ndarray."),
    "the similarity first": ((S, Q, D), "query_codes must be BinaryCodes, got a Similarity."),
    "the similarity second": ((Q, S, D), "database_codes must be BinaryCodes, got a Similarity."),
    "sides exchanged": ((D, Q, S), "similarity must have the shape (4, 2) of the codes, got (2, 4)."),
    "codes of two lengths": (
        (Q, D.first_bits(2), S),
        "query_codes and database_codes must have the same number of bits, got 3 and 2.",
    ),
}
OF_HISTOGRAMS = {
    "codes alone": ((Q, D), f"{OTHERS} a BinaryCodes without one of the others."),
    "signs alone": ((SIGNS,), f"{OTHERS} a ndarray without one of the others."),
    "histograms and more": ((H, D, S), f"{OTHERS} histograms with one of the others. Leave the others out."),
    "histograms and a similarity": ((H, None, S), f"{OTHERS} histograms with one of the others."),
}
METRICS = {
    "distance_histograms": (evaluate.distance_histograms, {}),
    "average_precision": (evaluate.average_precision, {}),
    "average_precisions": (evaluate.average_precisions, {}),
    "precision_recall": (evaluate.precision_recall, {}),
    "recall_at": (evaluate.recall_at, {"retrieved": 2}),
}
SEEDED = {
    "load": lambda seed: datasets.load("uniform10", random_state=seed),
    "uniform": lambda seed: datasets.uniform(9, 2, random_state=seed),
    "paper_protocol": lambda seed: evaluate.paper_protocol(POINTS, random_state=seed, n_train=3, average=1),
}
SEARCHES = {
    "nearest_codes": lambda queries, items: ah.nearest_codes(queries, items, 1),
    "codes_within": lambda queries, items: ah.codes_within(queries, items, 1),
    "count_distances": lambda queries, items: ah.count_distances(queries, items),
}
CASES = [
    *(
        (f"{name}: {message}", lambda call=call, args=args, more=more: call(*args, **more))
        for name, (call, more) in METRICS.items()
        for args, message in (OF_CODES | ({} if name == "distance_histograms" else OF_HISTOGRAMS)).values()
    ),
    *(
        (f"{name}: {SEED} {seed!r}.", lambda call=call, seed=seed: call(seed))
        for name, call in SEEDED.items()
        for seed in (-1, "a", True, 1.5, [1, 2])
    ),
    *(
        (
            f"{name}: {side} must be BinaryCodes, got a ndarray. {MADE}",
            lambda call=call, pair=pair: call(*pair),
        )
        for name, call in SEARCHES.items()
        for side, pair in (("queries", (SIGNS, D)), ("database", (Q, SIGNS)))
    ),
    (
        f"recall_at_k: query_codes must be BinaryCodes, got a ndarray. {MADE}",
        lambda: evaluate.recall_at_k(SIGNS[:2], D, [[0], [1]], retrieved=1),
    ),
    (
        f"recall_at_k: database_codes must be BinaryCodes, got a ndarray. {MADE}",
        lambda: evaluate.recall_at_k(Q, SIGNS, [[0], [1]], retrieved=1),
    ),
    (
        f"recall_at_k: true_ids must be integers of shape (2, k), {RAGGED}",
        lambda: evaluate.recall_at_k(Q, D, [[0], [1, 2]], retrieved=1),
    ),
    (
        "recall_at_k: true_ids must be integers of shape (2, k), got object of shape ().",
        lambda: evaluate.recall_at_k(Q, D, S, retrieved=1),
    ),
    (f"Similarity: {SHAPE} None.", lambda: Similarity([0, 1], [0], None)),
    (f"Similarity: {SHAPE} 'ab'.", lambda: Similarity([0, 1], [0], "ab")),
    (f"Similarity: {SHAPE} 3.", lambda: Similarity([0, 1], [0], 3)),
    (f"Similarity: {SHAPE} (1.5, 2).", lambda: Similarity([0, 1], [0], (1.5, 2))),
    (f"Similarity: {SHAPE} (True, 2).", lambda: Similarity([0, 1], [0], (True, 2))),
    (f"Similarity: {SHAPE} (1,).", lambda: Similarity([0, 1], [0], (1,))),
    (f"Similarity: {SHAPE} (1, -2).", lambda: Similarity([0, 1], [0], (1, -2))),
    (
        f"Similarity: indptr must be a 1-d array of integers, {RAGGED}",
        lambda: Similarity([[0], [1, 2]], [0], (1, 2)),
    ),
    (
        f"Similarity: indices must be a 1-d array of integers, {RAGGED}",
        lambda: Similarity([0, 1], [[0], [1, 2]], (1, 2)),
    ),
    (
        "Similarity: origin must be a mapping or None, got a str.",
        lambda: Similarity([0, 1], [0], (1, 2), origin="labels"),
    ),
    (
        f"Similarity.rows: ids must be a slice, 1-d integers or a boolean mask, {RAGGED}",
        lambda: S.rows([[0], [0, 1]]),
    ),
    (
        f"Similarity.columns: ids must be a slice, 1-d integers or a boolean mask, {RAGGED}",
        lambda: S.columns([[0], [0, 1]]),
    ),
    (
        f"labels: y must be 1-d, one label for each item, {RAGGED}",
        lambda: similarity.labels([[1], [1, 2]]),
    ),
    (
        f"labels: y_database must be 1-d, one label for each item, {RAGGED}",
        lambda: similarity.labels([1, 2], [[1], [1, 2]]),
    ),
    (
        "labels: y of float64 must be at most 2^53 in size, beyond which integers are rounded, got 2e+300.",
        lambda: similarity.labels([1e300, 2e300, 1e300]),
    ),
    (
        f"shared_labels: tags must be 2-d, items by tags, {RAGGED}",
        lambda: similarity.shared_labels([[1], [1, 0]]),
    ),
    (
        f"shared_labels: tags_database must be 2-d, items by tags, {RAGGED}",
        lambda: similarity.shared_labels([[1, 0]], [[1], [1, 0]]),
    ),
    (
        f"from_matrix: S must be 2-d, queries by items, {RAGGED}",
        lambda: similarity.from_matrix([[1], [1, -1]]),
    ),
    (
        f"neighbors: queries must be a 2-d array of shape (n_items, n_features), {RAGGED}",
        lambda: similarity.neighbors([[1.0], [1.0, 2.0]], average=1),
    ),
    (
        f"nearest: database must be a 2-d array of shape (n_items, n_features), {RAGGED}",
        lambda: similarity.nearest(POINTS, [[1.0], [1.0, 2.0]], 1),
    ),
    (
        f"BinaryCodes.from_signs: matrix must be 2-d with 1 to 1024 columns, {RAGGED}",
        lambda: ah.BinaryCodes.from_signs([[1], [1, -1]]),
    ),
    (
        f"BinaryCodes.from_bools: matrix must be 2-d with 1 to 1024 columns, {RAGGED}",
        lambda: ah.BinaryCodes.from_bools([[True], [True, False]]),
    ),
    (
        f"BinaryCodes.from_bytes: packed must be a uint8 array of shape (n, 1) for 8 bits, {RAGGED}",
        lambda: ah.BinaryCodes.from_bytes([[1], [1, 2]], 8),
    ),
    (
        "BinaryCodes[...]: the index must be an integer, a slice, or a 1-d array of integers or booleans, "
        f"{RAGGED}",
        lambda: D[[[0], [0, 1]]],
    ),
    (
        "nearest_codes: allowed must be a bool array of shape (4,), one for each item of the database, "
        f"{RAGGED}",
        lambda: ah.nearest_codes(Q, D, 1, allowed=[[True], [True, False]]),
    ),
    ("load: folder must be a path or None, got a int.", lambda: datasets.load("nursery", folder=3)),
    ("load: name must be one of 'uniform10', ", lambda: datasets.load(None)),
    (
        "paper_protocol: source must hold real numbers",
        lambda: evaluate.paper_protocol([["a"]], random_state=0),
    ),
]


@pytest.mark.parametrize(("message", "call"), CASES, ids=[message[:60] for message, _ in CASES])
def test_bad_calls_are_refused_by_name(message, call):
    with pytest.raises(AsymhashError, match="^" + re.escape(message)) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, (ValueError, TypeError))


@pytest.mark.parametrize("module", [evaluate, similarity, datasets], ids=lambda module: module.__name__)
def test_every_public_function_is_in_the_table(module):
    functions = {name for name in module.__all__ if inspect.isfunction(getattr(module, name))}
    functions -= {"nursery", "names"}  # they take nothing
    refusing = {message.split(":")[0] for message, _ in CASES}
    assert len(functions) > 1
    assert functions <= refusing


def test_the_good_calls_beside_them_work():
    assert evaluate.average_precision(H) == evaluate.average_precision(Q, D, S)
    assert evaluate.average_precisions(H) == evaluate.average_precisions(Q, D, S)
    for make in (int, np.int64, np.random.default_rng):
        assert np.array_equal(datasets.uniform(9, 2, make(0)), datasets.uniform(9, 2, 0))
        loaded = datasets.load("uniform10", random_state=make(0))
        assert np.array_equal(loaded.vectors, datasets.load("uniform10").vectors)
    for shape in ((2, 4), [2, 4], np.array([2, 4]), (np.int64(2), np.int32(4)), sp.csr_array((2, 4)).shape):
        assert Similarity([0, 1, 2], [0, 1], shape) == S
