"""Exact search against its twin in plain NumPy: every level, length and tail, ties, filters, threads."""

import os
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asymhash import kernels
from asymhash.errors import InvalidArgument, InvalidType
from asymhash.kernels import reference

LENGTHS = [
    1,
    2,
    7,
    8,
    9,
    31,
    33,
    63,
    64,
    65,
    127,
    128,
    129,
    192,
    193,
    256,
    257,
    320,
    511,
    512,
    513,
    777,
    1023,
    1024,
]
# Around vectors of 4 and 8 items, strips of 64, blocks of 256 to 2048.
ITEM_COUNTS = [
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    9,
    15,
    16,
    17,
    63,
    64,
    65,
    127,
    128,
    129,
    255,
    256,
    257,
    513,
    2047,
    2048,
    2049,
]
# Queries are taken by 8, 4, 2 and 1.
QUERY_COUNTS = [1, 2, 3, 4, 7, 8, 9, 15, 17]


@pytest.fixture(params=["portable", "avx2", "avx512"])
def forced_level(request):
    if request.param not in kernels.levels():
        pytest.skip(f"this machine has no {request.param}")
    with kernels.force_level(request.param):
        yield request.param


def random_words(rng, n_items, n_bits):
    """Draw codes of every density, so that all distances come up; a third are duplicates of others."""
    bools = rng.random((n_items, n_bits)) < rng.random((n_items, 1))
    if n_items > 2:
        copies = rng.integers(0, n_items, n_items // 3)
        bools[rng.integers(0, n_items, len(copies))] = bools[copies]
    packed = np.packbits(bools, axis=1, bitorder="little")
    octets = np.zeros((n_items, -(-n_bits // 64) * 8), dtype=np.uint8)
    octets[:, : packed.shape[1]] = packed
    return octets.view(np.uint64)


def bitmap_of(allowed):
    octets = np.zeros(-(-len(allowed) // 64) * 8, dtype=np.uint8)
    octets[: -(-len(allowed) // 8)] = np.packbits(allowed, bitorder="little")
    return octets.view(np.uint64)


def assert_all_searches_equal_reference(queries, items, *, k, radius, allowed=None, n_threads=1):
    """Compare the three searches; returns how many items the radius held."""
    bitmap = None if allowed is None else bitmap_of(allowed)
    found = kernels.nearest_items(queries, items, k, allowed=bitmap, n_threads=n_threads)
    for ours, expected in zip(found, reference.nearest_items(queries, items, k, allowed), strict=True):
        assert ours.dtype == expected.dtype
        np.testing.assert_array_equal(ours, expected)
    within = kernels.items_within(queries, items, radius, allowed=bitmap, n_threads=n_threads)
    for ours, expected in zip(within, reference.items_within(queries, items, radius, allowed), strict=True):
        assert ours.dtype == expected.dtype
        np.testing.assert_array_equal(ours, expected)
    n_bits = 64 * items.shape[1]
    counts = kernels.distance_counts(queries, items, n_bits, allowed=bitmap, n_threads=n_threads)
    np.testing.assert_array_equal(counts, reference.distance_counts(queries, items, n_bits, allowed))
    return len(within[2])


@pytest.mark.parametrize("n_bits", LENGTHS)
def test_search_equals_reference_at_every_length(forced_level, n_bits):
    rng = np.random.default_rng(n_bits)
    queries, items = random_words(rng, 5, n_bits), random_words(rng, 400, n_bits)
    for n_queries in (1, 5):
        n_found = assert_all_searches_equal_reference(queries[:n_queries], items, k=10, radius=n_bits // 2)
        assert n_found > 0


@pytest.mark.parametrize("n_bits", [3, 64, 128, 200, 256, 500, 1000])
@pytest.mark.parametrize("n_items", ITEM_COUNTS)
def test_search_equals_reference_at_every_tail(forced_level, n_items, n_bits):
    rng = np.random.default_rng(n_items)
    queries, items = random_words(rng, 3, n_bits), random_words(rng, n_items, n_bits)
    for n_queries in (1, 3):
        for k in {1, 7, max(n_items // 2, 1), max(n_items - 1, 1), n_items + 1}:
            n_found = assert_all_searches_equal_reference(queries[:n_queries], items, k=k, radius=n_bits // 2)
    assert n_found > 0 or n_items < 5


@pytest.mark.parametrize("n_bits", [20, 64, 100, 192, 256, 400])
@pytest.mark.parametrize("n_queries", QUERY_COUNTS)
def test_any_number_of_queries_finds_the_same(forced_level, n_queries, n_bits):
    rng = np.random.default_rng(n_queries)
    queries, items = random_words(rng, n_queries, n_bits), random_words(rng, 700, n_bits)
    assert assert_all_searches_equal_reference(queries, items, k=30, radius=n_bits // 2) > n_queries


@pytest.mark.parametrize("n_bits", [5, 64, 128, 300])
@pytest.mark.parametrize("share", [0.0, 0.005, 0.1, 0.5, 0.95, 1.0])
def test_filters_leave_what_they_allow(forced_level, share, n_bits):
    rng = np.random.default_rng(7)
    queries = random_words(rng, 9, n_bits)
    for n_items in (1, 63, 64, 65, 1500):
        items = random_words(rng, n_items, n_bits)
        allowed = rng.random(n_items) < share
        for n_queries in (1, 9):
            n_found = assert_all_searches_equal_reference(
                queries[:n_queries], items, k=20, radius=n_bits // 2, allowed=allowed
            )
    assert n_found > 0 or not allowed.any()


def test_filters_skip_empty_stretches_and_ignore_bits_beyond_the_items(forced_level):
    rng = np.random.default_rng(8)
    queries, items = random_words(rng, 2, 128), random_words(rng, 5000, 128)
    allowed = np.zeros(5000, dtype=bool)
    allowed[[0, 63, 64, 2111, 2112, 4999]] = True
    assert assert_all_searches_equal_reference(queries, items, k=6, radius=128, allowed=allowed) == 12
    bitmap = bitmap_of(allowed)
    bitmap[-1] |= np.uint64(1 << 63)  # item 5055, which does not exist
    assert kernels.nearest_items(queries, items, 10, allowed=bitmap)[1].max() == 4999
    assert kernels.distance_counts(queries, items, 128, allowed=bitmap).sum() == 12


def test_ties_go_to_the_smaller_id(forced_level):
    items = np.zeros((3000, 1), dtype=np.uint64)
    items[::3] = 1
    distances, ids = kernels.nearest_items(np.zeros((2, 1), np.uint64), items, 2100)
    zeros, ones = np.flatnonzero(items[:, 0] == 0), np.flatnonzero(items[:, 0] == 1)
    assert len(zeros) == 2000
    assert ids[0].tolist() == [*zeros, *ones[:100]]
    assert distances[1].tolist() == [0] * 2000 + [1] * 100


@pytest.mark.parametrize("n_bits", [8, 64, 128])
def test_items_in_the_worst_order_are_found(forced_level, n_bits):
    """Every item is nearer than all before it, and a sample of the first ones says nothing about the last."""
    rng = np.random.default_rng(9)
    queries, items = random_words(rng, 10, n_bits), random_words(rng, 6000, n_bits)
    falling = np.argsort(-reference.hamming_distances(queries[:1], items)[0].astype(int), kind="stable")
    for order in (falling, falling[::-1]):
        for n_queries in (1, 10):
            for k in (1, 100, 1000, 6000):
                sorted_items = items[order]
                assert_all_searches_equal_reference(queries[:n_queries], sorted_items, k=k, radius=2)


def test_a_sample_that_misleads_does_no_harm(forced_level):
    """All items that a regular sample may hit are near, the others far: the guessed threshold is too low."""
    n_items, k = 20000, 300
    for step in range(2, 40):
        items = np.full((n_items, 1), 2**64 - 1, dtype=np.uint64)
        items[::step][: k // 2] = 0
        items[::step][k // 2 :] = 1
        queries = np.array([[0], [3]], dtype=np.uint64)
        distances, ids = kernels.nearest_items(queries, items, k)
        expected = reference.nearest_items(queries, items, k)
        np.testing.assert_array_equal(distances, expected[0])
        np.testing.assert_array_equal(ids, expected[1])


@pytest.mark.parametrize(("n_queries", "n_threads"), [(17, 1), (40, 1), (70, 2)])
@pytest.mark.parametrize("k", [48, 64])
def test_many_queries_begin_with_the_search_of_a_sample(forced_level, k, n_queries, n_threads):
    """From k = 48, 16 queries and 4 k k items on."""
    rng = np.random.default_rng(k)
    items, queries = random_words(rng, 20_000, 65), random_words(rng, n_queries, 65)
    assert len(items) > 4 * k * k
    found = kernels.nearest_items(queries, items, k, n_threads=n_threads)
    for ours, expected in zip(found, reference.nearest_items(queries, items, k), strict=True):
        np.testing.assert_array_equal(ours, expected)
    allowed = rng.random(20_000) < 0.9
    filtered = kernels.nearest_items(queries, items, k, allowed=bitmap_of(allowed), n_threads=n_threads)
    for ours, expected in zip(filtered, reference.nearest_items(queries, items, k, allowed), strict=True):
        np.testing.assert_array_equal(ours, expected)
    assert allowed[filtered[1]].all()


@pytest.mark.parametrize("period", [4, 16, 63])
def test_interleaved_items_are_found(forced_level, period):
    """Queries are like one kind of item of `period`; a regular sample might know none of it, or nothing else."""
    rng = np.random.default_rng(period)
    kinds = rng.integers(0, 2**64, (period, 1), dtype=np.uint64)
    noise = rng.integers(0, 2**64, (3, 20_000, 1), dtype=np.uint64)
    items = np.resize(kinds, (20_000, 1)) ^ (noise[0] & noise[1] & noise[2])
    queries = kinds[:1] ^ (np.uint64(1) << np.arange(20, dtype=np.uint64))[:, None]
    found = kernels.nearest_items(queries, items, 64)
    for ours, expected in zip(found, reference.nearest_items(queries, items, 64), strict=True):
        np.testing.assert_array_equal(ours, expected)
    assert (found[1] % period == 0).mean() > 0.9


@pytest.mark.parametrize("n_threads", [1, 2, 3, 16])
def test_results_do_not_depend_on_threads(forced_level, n_threads):
    rng = np.random.default_rng(10)
    for n_queries, n_items, n_bits in [
        (1, 40_000, 1024),
        (2, 100_001, 192),
        (40, 20_003, 128),
        (1, 600_000, 64),
    ]:
        queries, items = random_words(rng, n_queries, 30), random_words(rng, n_items, 30)
        queries, items = (
            np.tile(words, (1, n_bits // 64)) ^ np.arange(n_bits // 64, dtype=np.uint64)
            for words in (queries, items)
        )
        allowed = bitmap_of(rng.random(n_items) < 0.3)
        for bitmap in (None, allowed):
            alone = kernels.nearest_items(queries, items, 500, allowed=bitmap)
            assert len(np.unique(alone[0])) > 1
            together = kernels.nearest_items(queries, items, 500, allowed=bitmap, n_threads=n_threads)
            alone += kernels.items_within(queries, items, n_bits // 16, allowed=bitmap)
            assert len(alone[4]) > 0
            together += kernels.items_within(
                queries, items, n_bits // 16, allowed=bitmap, n_threads=n_threads
            )
            alone += (kernels.distance_counts(queries, items, n_bits, allowed=bitmap),)
            together += (
                kernels.distance_counts(queries, items, n_bits, allowed=bitmap, n_threads=n_threads),
            )
            for ours, expected in zip(together, alone, strict=True):
                np.testing.assert_array_equal(ours, expected)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_search_equals_reference_for_any_shape(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed"))
    n_bits = data.draw(st.integers(1, 1024), label="n_bits")
    n_items = data.draw(st.integers(0, 300), label="n_items")
    n_queries = data.draw(st.integers(0, 20), label="n_queries")
    k = data.draw(st.integers(1, 320), label="k")
    radius = data.draw(st.integers(0, 1100), label="radius")
    allowed = rng.random(n_items) < rng.random() if data.draw(st.booleans(), label="filtered") else None
    level = data.draw(st.sampled_from(kernels.levels()), label="level")
    queries, items = random_words(rng, n_queries, n_bits), random_words(rng, n_items, n_bits)
    with kernels.force_level(level):
        assert_all_searches_equal_reference(
            queries, items, k=k, radius=radius, allowed=allowed, n_threads=data.draw(st.integers(1, 3))
        )


def test_no_queries_and_no_items_give_empty_answers(forced_level):
    none, some = np.zeros((0, 2), dtype=np.uint64), np.zeros((70, 2), dtype=np.uint64)
    for queries, items in ((none, some), (some, none), (none, none)):
        distances, ids = kernels.nearest_items(queries, items, 5)
        assert distances.shape == ids.shape == (len(queries), min(5, len(items)))
        offsets, distances, ids = kernels.items_within(queries, items, 5)
        assert offsets.tolist() == [0] * (len(queries) + 1)
        assert len(distances) == len(ids) == 0
        assert kernels.distance_counts(queries, items, 100).tolist() == [[0] * 101] * len(queries)


def test_results_outlive_their_making():
    rng = np.random.default_rng(11)
    items = random_words(rng, 3000, 64)
    offsets, distances, ids = kernels.items_within(items[:20], items, 20)
    expected = reference.items_within(items[:20], items, 20)
    assert offsets[-1] > 1000
    del offsets
    for _ in range(20):
        kernels.items_within(items[:20], items, 21)
    np.testing.assert_array_equal(distances, expected[1])
    np.testing.assert_array_equal(ids, expected[2])


def test_search_lets_other_threads_run():
    """A thread that only counts goes on while a search of a second or so runs: the interpreter lock is free."""
    items = np.random.default_rng(12).integers(0, 2**64, (200_000, 16), dtype=np.uint64)
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    watcher = threading.Thread(target=tick)
    watcher.start()
    start = time.perf_counter()
    with kernels.force_level("portable"):
        kernels.nearest_items(items[:20], items, 10)
    end = time.perf_counter()
    done.set()
    watcher.join()
    inside = [at for at in ticks if start + 0.1 * (end - start) < at < end - 0.1 * (end - start)]
    assert end - start > 0.02
    assert len(inside) >= 3


WORDS = np.zeros((70, 2), dtype=np.uint64)
BITMAP = "allowed must be a uint64 array of shape (2,) for 70 items"


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        (
            {"queries": [[1, 2]]},
            InvalidType,
            "queries must be a uint64 array of shape (n, 1 to 16 words), got a list.",
        ),
        (
            {"items": WORDS[:, :1]},
            InvalidArgument,
            "queries and items must have the same number of words, got 2 and 1.",
        ),
        ({"allowed": [1, 2]}, InvalidType, f"{BITMAP}, got a list."),
        ({"allowed": np.zeros(2, dtype=np.int64)}, InvalidType, f"{BITMAP}, got dtype int64."),
        ({"allowed": np.zeros(1, dtype=np.uint64)}, InvalidArgument, f"{BITMAP}, got shape (1,)."),
        ({"n_threads": 0}, InvalidArgument, "n_threads must be an integer from 1 to 1024, got 0."),
        (
            {"n_threads": 1.5},
            InvalidType,
            "n_threads must be an integer from 1 to 1024, got 1.5 of type float.",
        ),
    ],
)
@pytest.mark.parametrize("search", [kernels.nearest_items, kernels.items_within, kernels.distance_counts])
def test_bad_input_is_refused_by_name(search, changes, kind, message):
    arguments = {"queries": WORDS, "items": WORDS, "allowed": None, "n_threads": 1} | changes
    with pytest.raises(kind) as error:
        search(arguments.pop("queries"), arguments.pop("items"), 3, **arguments)
    assert str(error.value) == f"{search.__name__}: {message}"


def test_k_and_radius_have_lowest_values():
    with pytest.raises(InvalidArgument) as error:
        kernels.nearest_items(WORDS, WORDS, 0)
    assert str(error.value) == "nearest_items: k must be an integer of at least 1, got 0."
    with pytest.raises(InvalidArgument) as error:
        kernels.items_within(WORDS, WORDS, -1)
    assert str(error.value) == "items_within: radius must be an integer of at least 0, got -1."


def test_sanitized_kernels_are_those_that_were_asked_for():
    """`make sanitize` sets the variable: a run that took the other module would prove nothing."""
    assert kernels.sanitized() == (os.environ.get("ASYMHASH_EXPECT_SANITIZED") == "1")
