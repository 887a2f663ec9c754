"""The compiled kernels against their twins in plain NumPy, at every instruction level of this machine."""

import threading

import numpy as np
import pytest

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
    32,
    33,
    63,
    64,
    65,
    100,
    127,
    128,
    129,
    192,
    255,
    256,
    300,
    512,
    777,
    1023,
    1024,
]
# Around the vector widths (4 and 8 items) and around the block of 256 items.
ITEM_COUNTS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 255, 256, 257, 263, 512, 600]


@pytest.fixture(params=["portable", "avx2", "avx512"])
def forced_level(request):
    if request.param not in kernels.levels():
        pytest.skip(f"this machine has no {request.param}")
    with kernels.force_level(request.param):
        yield request.param


def random_words(rng, n_items, n_bits):
    """Draw codes, a few of them far from and close to each other, so that all distances come up."""
    bools = rng.random((n_items, n_bits)) < rng.random((n_items, 1))
    packed = np.packbits(bools, axis=1, bitorder="little")
    octets = np.zeros((n_items, -(-n_bits // 64) * 8), dtype=np.uint8)
    octets[:, : packed.shape[1]] = packed
    return octets.view(np.uint64)


def test_reference_counts_different_bits():
    first, second = 0b1011, 0b0110
    words = [np.array([[0, code]], dtype=np.uint64) for code in (first, second)]
    assert reference.hamming_distances(*words).tolist() == [[bin(first ^ second).count("1")]]
    assert reference.distance_counts(*words, 128)[0].nonzero()[0].tolist() == [3]


@pytest.mark.parametrize("n_bits", LENGTHS)
def test_kernels_equal_reference_at_every_length(forced_level, n_bits):
    rng = np.random.default_rng(n_bits)
    queries, items = random_words(rng, 5, n_bits), random_words(rng, 300, n_bits)
    expected = reference.hamming_distances(queries, items)
    assert expected.max() > n_bits // 2  # not all alike
    np.testing.assert_array_equal(kernels.hamming_distances(queries, items), expected)
    counts = kernels.distance_counts(queries, items, n_bits)
    assert (counts.sum(axis=1) == len(items)).all()
    np.testing.assert_array_equal(counts, reference.distance_counts(queries, items, n_bits))


@pytest.mark.parametrize("n_bits", [10, 64, 65, 1000])
@pytest.mark.parametrize("n_items", ITEM_COUNTS)
def test_kernels_equal_reference_at_every_tail(forced_level, n_items, n_bits):
    rng = np.random.default_rng(n_items)
    queries, items = random_words(rng, 3, n_bits), random_words(rng, n_items, n_bits)
    distances = kernels.hamming_distances(queries, items)
    assert distances.shape == (3, n_items)
    np.testing.assert_array_equal(distances, reference.hamming_distances(queries, items))
    counts = kernels.distance_counts(queries, items, n_bits)
    np.testing.assert_array_equal(counts, reference.distance_counts(queries, items, n_bits))


def test_all_bits_different_is_counted_at_the_longest_length(forced_level):
    zeros = np.zeros((1, 16), dtype=np.uint64)
    ones = np.full((9, 16), 2**64 - 1, dtype=np.uint64)
    assert kernels.hamming_distances(zeros, ones).tolist() == [[1024] * 9]
    assert kernels.distance_counts(zeros, ones, 1024)[0, 1024] == 9


def test_no_queries_give_no_rows(forced_level):
    none, items = np.zeros((0, 2), dtype=np.uint64), np.zeros((7, 2), dtype=np.uint64)
    assert kernels.hamming_distances(none, items).shape == (0, 7)
    assert kernels.distance_counts(none, items, 100).shape == (0, 101)
    assert kernels.distance_counts(items, none, 100).tolist() == [[0] * 101] * 7


def test_results_have_the_promised_dtypes():
    words = np.zeros((2, 1), dtype=np.uint64)
    assert kernels.hamming_distances(words, words).dtype == np.uint16
    assert kernels.distance_counts(words, words, 64).dtype == np.int64
    assert kernels.distance_counts(words, words, 5).flags.c_contiguous


def test_read_only_and_non_contiguous_words_are_taken(forced_level):
    rng = np.random.default_rng(3)
    wide = random_words(rng, 40, 256)
    items = wide[::2, 1:3]
    queries = np.asfortranarray(wide[:3, 1:3])
    queries.flags.writeable = False
    expected = reference.hamming_distances(queries, items)
    assert expected.any()
    np.testing.assert_array_equal(kernels.hamming_distances(queries, items), expected)


def test_threads_get_the_same_answer():
    rng = np.random.default_rng(4)
    queries, items = random_words(rng, 20, 96), random_words(rng, 3000, 96)
    expected = reference.hamming_distances(queries, items)
    results = {}

    def work(name):
        results[name] = kernels.hamming_distances(queries, items)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(np.array_equal(result, expected) for result in results.values())


def test_levels_begin_with_portable_and_the_best_is_in_use():
    assert kernels.levels()[0] == "portable"
    assert kernels.level() == kernels.levels()[-1]


def test_force_level_is_undone_by_an_exception():
    before = kernels.level()
    with pytest.raises(ZeroDivisionError), kernels.force_level("portable"):
        assert kernels.level() == "portable"
        raise ZeroDivisionError
    assert kernels.level() == before


def test_force_level_names_the_levels_of_this_machine():
    with pytest.raises(InvalidArgument) as error, kernels.force_level("sse9"):
        pass
    names = ", ".join(repr(name) for name in (*kernels.levels(), "reference"))
    assert str(error.value) == f"force_level: name must be one of {names}, got 'sse9'."


WORDS = np.zeros((2, 2), dtype=np.uint64)
EXPECTED = "must be a uint64 array of shape (n, 1 to 16 words)"


@pytest.mark.parametrize(
    ("queries", "items", "kind", "message"),
    [
        ([[1, 2]], WORDS, InvalidType, f"queries {EXPECTED}, got a list."),
        (WORDS, WORDS.astype(np.int64), InvalidType, f"items {EXPECTED}, got dtype int64."),
        (WORDS.astype(np.uint8), WORDS, InvalidType, f"queries {EXPECTED}, got dtype uint8."),
        (WORDS.astype(">u8"), WORDS, InvalidType, f"queries {EXPECTED}, got dtype >u8."),
        (WORDS[0], WORDS, InvalidArgument, f"queries {EXPECTED}, got shape (2,)."),
        (WORDS, WORDS[:, :0], InvalidArgument, f"items {EXPECTED}, got shape (2, 0)."),
        (WORDS, np.zeros((1, 17), np.uint64), InvalidArgument, f"items {EXPECTED}, got shape (1, 17)."),
        (
            WORDS,
            WORDS[:, :1],
            InvalidArgument,
            "queries and items must have the same number of words, got 2 and 1.",
        ),
    ],
)
def test_wrong_words_are_refused_by_name(queries, items, kind, message):
    with pytest.raises(kind) as error:
        kernels.hamming_distances(queries, items)
    assert str(error.value) == f"hamming_distances: {message}"
    with pytest.raises(kind) as error:
        kernels.distance_counts(queries, items, 8)
    assert str(error.value) == f"distance_counts: {message}"


def test_distance_counts_refuses_a_length_that_the_words_do_not_have():
    for n_bits in (0, 129):
        with pytest.raises(InvalidArgument) as error:
            kernels.distance_counts(WORDS, WORDS, n_bits)
        assert str(error.value) == f"distance_counts: n_bits must be an integer from 1 to 128, got {n_bits}."


def test_distance_counts_refuses_bits_beyond_the_length(forced_level):
    items = np.array([[0], [0b11111]], dtype=np.uint64)
    with pytest.raises(InvalidArgument) as error:
        kernels.distance_counts(items[:1], items, 4)
    assert str(error.value) == "distance_counts: bits beyond n_bits=4 must be zero, got a distance of 5."
