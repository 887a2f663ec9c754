"""Metrics against obviously right twins (loops, sorts, permutations) and against scikit-learn."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, precision_recall_curve

from asymhash.codes import BinaryCodes
from asymhash.errors import InvalidArgument, InvalidType
from asymhash.evaluate import (
    DistanceHistograms,
    average_precision,
    average_precisions,
    distance_histograms,
    precision_recall,
    recall_at,
    recall_at_k,
)
from asymhash.similarity import Similarity, from_matrix

RULES = ("step", "anchored", "expected")


def random_case(m=9, n=23, n_bits=5, share=0.3, seed=0):
    """Codes that tie often, with a query that has no positive and one that has nothing else."""
    rng = np.random.default_rng(seed)
    queries = rng.choice([-1, 1], (m, n_bits))
    items = rng.choice([-1, 1], (n, n_bits))
    similar = rng.random((m, n)) < share
    similar[0], similar[-1] = False, True
    codes = BinaryCodes.from_signs(queries), BinaryCodes.from_signs(items)
    distances = np.array([[np.count_nonzero(q != v) for v in items] for q in queries])
    return *codes, from_matrix(similar), distances, similar


def naive_average_precision(distances, similar, rule):
    """Walk over the radii, one point each, and add up."""
    total, area, recall, precision = np.count_nonzero(similar), 0.0, 0.0, 1.0
    for radius in range(distances.max() + 1):
        inside = distances <= radius
        if not inside.any():
            continue
        new_recall = np.count_nonzero(similar & inside) / total
        new_precision = np.count_nonzero(similar & inside) / np.count_nonzero(inside)
        height = new_precision if rule == "step" else (precision + new_precision) / 2
        area += (new_recall - recall) * height
        recall, precision = new_recall, new_precision
    return area


def ordered_average_precision(similar_in_order):
    hits = np.flatnonzero(similar_in_order)
    return np.mean(np.arange(1, hits.size + 1) / (hits + 1))


def permuted_average_precision(distances, similar):
    """Take the mean over all orders of all items that agree with the distances."""
    ties = [np.flatnonzero(distances == d) for d in np.unique(distances)]
    orders = itertools.product(*(itertools.permutations(tie) for tie in ties))
    return np.mean([ordered_average_precision(similar[np.concatenate(order)]) for order in orders])


def naive_scores(distances, similar, score):
    return {
        "pairs": score(distances.ravel(), similar.ravel()),
        "queries": np.mean([score(d, s) for d, s in zip(distances, similar, strict=True) if s.any()]),
    }


@pytest.mark.parametrize("n_bits", [1, 5, 8, 64, 65, 130])
@pytest.mark.parametrize("block_pairs", [1 << 20, 7, 1])
def test_histograms_count_pairs_by_distance(monkeypatch, n_bits, block_pairs):
    monkeypatch.setattr("asymhash.evaluate.histograms._BLOCK_PAIRS", block_pairs)
    queries, items, similarity, distances, similar = random_case(n_bits=n_bits)
    histograms = distance_histograms(queries, items, similarity)
    for row in range(len(queries)):
        for radius in range(n_bits + 1):
            assert histograms.all[row, radius] == np.count_nonzero(distances[row] == radius)
            wanted = np.count_nonzero((distances[row] == radius) & similar[row])
            assert histograms.positive[row, radius] == wanted
    assert histograms.positive.sum() == similarity.n_positives > 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_bits", [1, 4, 12, 70])
def test_step_and_anchored_equal_the_walk_over_radii(seed, n_bits):
    queries, items, similarity, distances, similar = random_case(n_bits=n_bits, seed=seed)
    for rule in ("step", "anchored"):
        wanted = naive_scores(distances, similar, lambda d, s, rule=rule: naive_average_precision(d, s, rule))
        for over in ("pairs", "queries"):
            found = average_precision(queries, items, similarity, rule=rule, over=over)
            assert found == pytest.approx(wanted[over], rel=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_step_is_the_average_precision_of_scikit_learn(seed):
    queries, items, similarity, distances, similar = random_case(seed=seed)
    wanted = naive_scores(distances, similar, lambda d, s: average_precision_score(s, -d))
    for over in ("pairs", "queries"):
        assert average_precision(queries, items, similarity, over=over) == pytest.approx(
            wanted[over], rel=1e-13
        )


@settings(max_examples=80, deadline=None)
@given(items=st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=7))
def test_expected_is_the_mean_over_all_orders_inside_ties(items):
    distances, similar = np.array([d for d, _ in items]), np.array([s for _, s in items])
    if not similar.any():
        similar[0] = True
    histograms = DistanceHistograms(
        np.bincount(distances, minlength=4)[None], np.bincount(distances[similar], minlength=4)[None]
    )
    wanted = permuted_average_precision(distances, similar)
    for over in ("pairs", "queries"):
        found = average_precision(histograms, rule="expected", over=over)
        assert found == pytest.approx(wanted, rel=1e-12)


def test_expected_is_near_the_mean_of_many_random_orders():
    queries, items, similarity, distances, similar = random_case(m=20, n=50)
    rng = np.random.default_rng(0)
    flat, truth = distances.ravel(), similar.ravel()
    orders = [np.lexsort((rng.random(flat.size), flat)) for _ in range(3000)]
    scores = [ordered_average_precision(truth[order]) for order in orders]
    found = average_precision(queries, items, similarity, rule="expected")
    assert np.std(scores) > 0
    assert abs(found - np.mean(scores)) < 4 * np.std(scores) / np.sqrt(len(scores))


def test_without_ties_step_and_expected_agree():
    items = BinaryCodes.from_bools(np.tri(12, 12, -1) > 0)  # item i is at distance i from the query
    queries = BinaryCodes.from_bools(np.zeros((1, 12), dtype=bool))
    similarity = Similarity([0, 3], [0, 4, 7], (1, 12))
    wanted = np.mean([1 / 1, 2 / 5, 3 / 8])
    for rule in ("step", "expected"):
        assert average_precision(queries, items, similarity, rule=rule) == pytest.approx(wanted, rel=1e-13)


def test_expected_keeps_its_digits_at_the_size_of_real_data():
    """At 3e9 pairs the digamma difference cancels; sums of 1/(R + t) in long doubles are the twin."""
    counts = np.array([[10, 1000, 10**6, 10**5, 3 * 10**9]])
    positive = np.array([[7, 400, 10**5, 3000, 10**6]])
    score, R, P = np.longdouble(0), 0, 0
    for n, p in zip(counts[0, :4].tolist(), positive[0, :4].tolist(), strict=True):
        t = np.arange(1, n + 1, dtype=np.longdouble)
        a = np.longdouble(p - 1) / (n - 1)
        score += (np.longdouble(p) / n) * ((P + 1 + (t - 1) * a) / (R + t)).sum()
        R, P = R + n, P + p
    n, p = (int(values[0, 4]) for values in (counts, positive))
    a = np.longdouble(p - 1) / (n - 1)
    difference = np.log1p(np.longdouble(n) / R) + (np.longdouble(1) / (R + n) - np.longdouble(1) / R) / 2
    score += (np.longdouble(p) / n) * (a * n + (P + 1 - a * (R + 1)) * difference)
    found = average_precision(DistanceHistograms(counts, positive), rule="expected")
    assert found == pytest.approx(float(score / positive.sum()), rel=1e-11)


def test_anchor_lifts_short_codes():
    """Where one radius retrieves all: the share of positives without the anchor, near a half with it."""
    histograms = DistanceHistograms(np.array([[100, 0]]), np.array([[10, 0]]))
    assert average_precision(histograms, rule="step") == pytest.approx(0.1)
    assert average_precision(histograms, rule="anchored") == pytest.approx(0.55)


def test_average_precisions_has_all_six():
    queries, items, similarity, _, _ = random_case()
    found = average_precisions(queries, items, similarity)
    assert sorted(found) == sorted(f"{rule}_{over}" for rule in RULES for over in ("pairs", "queries"))
    for name, value in found.items():
        rule, over = name.split("_")
        assert value == average_precision(queries, items, similarity, rule=rule, over=over)
    assert len(set(found.values())) == 6
    assert average_precisions(distance_histograms(queries, items, similarity)) == found


def test_mean_over_queries_does_not_depend_on_blocks(monkeypatch):
    histograms = distance_histograms(*random_case(m=30)[:3])
    wanted = average_precisions(histograms)
    monkeypatch.setattr("asymhash.evaluate.metrics._BLOCK_ROWS", 4)
    assert average_precisions(histograms) == wanted


def test_precision_recall_is_that_of_scikit_learn_and_leaves_empty_radii_out():
    queries, items, similarity, distances, similar = random_case(m=3, n=9, n_bits=40)
    curve = precision_recall(queries, items, similarity)
    assert curve.radius.tolist() == list(range(distances.min(), 41))
    precision, recall, thresholds = precision_recall_curve(similar.ravel(), -distances.ravel())
    at = {-int(t): (p, r) for t, p, r in zip(thresholds, precision, recall, strict=False)}
    assert at
    for radius, p, r, retrieved in zip(
        curve.radius, curve.precision, curve.recall, curve.retrieved, strict=True
    ):
        assert retrieved == np.count_nonzero(distances <= radius)
        if radius in at:
            assert (p, r) == pytest.approx(at[radius])
    assert curve.recall[-1] == 1.0
    assert curve.precision[-1] == similarity.share_positive


def naive_recall(distances, similar, size):
    """Take the share of a tie that fits as the chance of each of its items."""
    recalls = []
    for d, s in zip(distances, similar, strict=True):
        if s.any():
            chances = [
                np.clip((size - np.count_nonzero(d < d[j])) / np.count_nonzero(d == d[j]), 0, 1)
                for j in np.flatnonzero(s)
            ]
            recalls.append(np.mean(chances))
    return np.mean(recalls)


def test_recall_at_is_the_expectation_over_ties():
    queries, items, similarity, distances, similar = random_case()
    sizes = [1, 2, 5, 22, 23, 1000]
    found = recall_at(queries, items, similarity, retrieved=sizes)
    assert found == pytest.approx([naive_recall(distances, similar, size) for size in sizes])
    assert found[-1] == found[-2] == 1.0
    assert 0 < found[0] < found[1] < 1
    assert recall_at(distance_histograms(queries, items, similarity), retrieved=5) == pytest.approx(found[2])
    rng = np.random.default_rng(1)
    order = np.array([np.lexsort((rng.random((2000, 23)), np.tile(d, (2000, 1)))) for d in distances[1:]])
    hits = np.take_along_axis(similar[1:, None], order[:, :, :5], axis=2).sum(axis=2)
    sampled = (hits.mean(axis=1) / similar[1:].sum(axis=1)).mean()
    assert sampled == pytest.approx(found[2], abs=0.01)


@pytest.mark.parametrize("block_pairs", [1 << 24, 50, 1])
def test_recall_at_k_follows_the_order_of_distance_then_id(monkeypatch, block_pairs):
    monkeypatch.setattr("asymhash.evaluate.metrics._BLOCK_PAIRS", block_pairs)
    queries, items, _, distances, _ = random_case(n_bits=3)
    truth = np.array([np.random.default_rng(i).permutation(23)[:4] for i in range(9)])
    order = np.argsort(distances, axis=1, kind="stable")
    sizes = [1, 2, 3, 7, 22, 23, 99]
    wanted = [
        np.mean([len({*o[:size]} & {*t}) / 4 for o, t in zip(order, truth, strict=True)]) for size in sizes
    ]
    found = recall_at_k(queries, items, truth, retrieved=sizes)
    assert found.tolist() == pytest.approx(wanted)
    assert 0 < found[3] < 1
    assert found[-1] == 1.0


@pytest.mark.parametrize("metric", [average_precision, average_precisions, precision_recall])
def test_a_similarity_without_positives_is_refused(metric):
    queries, items, similarity, _, _ = random_case()
    nothing = Similarity(np.zeros(10, dtype=int), [], similarity.shape)
    message = f"{metric.__name__}: similarity must have at least one similar pair, got none."
    with pytest.raises(InvalidArgument, match=f"^{re.escape(message)}$"):
        metric(queries, items, nothing)


def test_codes_and_similarity_that_do_not_fit_are_refused():
    queries, items, similarity, _, _ = random_case()
    cases = [
        (
            (queries, items.first_bits(3), similarity),
            "query_codes and database_codes must have the same number of bits, got 5 and 3. "
            "Encode both with the same model.",
        ),
        ((items, queries, similarity), "similarity must have the shape (23, 9) of the codes, got (9, 23)."),
    ]
    for arguments, message in cases:
        with pytest.raises(InvalidArgument, match=f"^average_precision: {re.escape(message)}$"):
            average_precision(*arguments)
    message = (
        "average_precision: query codes, database codes and a similarity must be given, "
        "or distance histograms alone, got a BinaryCodes without one of the others."
    )
    with pytest.raises(InvalidType, match=f"^{re.escape(message)}$"):
        average_precision(queries, items)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rule": "trapezoid"}, "rule must be one of 'step', 'anchored', 'expected', got 'trapezoid'."),
        ({"over": "items"}, "over must be one of 'pairs', 'queries', got 'items'."),
    ],
)
def test_unknown_rules_are_refused(arguments, message):
    with pytest.raises(InvalidArgument, match=f"^average_precision: {re.escape(message)}$"):
        average_precision(*random_case()[:3], **arguments)


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        (
            np.zeros((8, 2), dtype=int),
            "true_ids must be integers of shape (9, k), got int64 of shape (8, 2).",
        ),
        (
            np.zeros((9, 0), dtype=int),
            "true_ids must be integers of shape (9, k), got int64 of shape (9, 0).",
        ),
        (np.zeros((9, 2)), "true_ids must be integers of shape (9, k), got float64 of shape (9, 2)."),
        (np.full((9, 2), 23), "true_ids must be from 0 to 22, got 23 to 23."),
        (np.full((9, 2), -1), "true_ids must be from 0 to 22, got -1 to -1."),
    ],
)
def test_wrong_true_ids_are_refused(truth, message):
    queries, items, _, _, _ = random_case()
    with pytest.raises(InvalidArgument, match=f"^recall_at_k: {re.escape(message)}$"):
        recall_at_k(queries, items, truth, retrieved=5)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([], "retrieved must be one number or more, got none."),
        ([3, 0], "retrieved must be an integer of at least 1, got 0."),
    ],
)
def test_wrong_numbers_of_retrieved_items_are_refused(sizes, message):
    with pytest.raises(InvalidArgument, match=f"^recall_at: {re.escape(message)}$"):
        recall_at(*random_case()[:3], retrieved=sizes)
