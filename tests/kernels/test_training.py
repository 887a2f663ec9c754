"""Kernels of the training against their twins in plain NumPy, at every level and for any number of threads."""

import numpy as np
import pytest

from asymhash import kernels
from asymhash.kernels import reference, training


@pytest.fixture(params=kernels.levels())
def forced_level(request):
    with kernels.force_level(request.param):
        yield request.param


def codes(rng, n_items, n_bits):
    words = np.zeros((n_items, max(1, -(-n_bits // 64))), dtype=np.uint64)
    lean = rng.random(n_items)  # codes of many and of few ones, so that all distances come up
    for bit in range(n_bits):
        training.set_bit(words, bit, np.where(rng.random(n_items) < lean, 1, -1).astype(np.int8))
    return words


def positives_of(rng, m, n, share=0.2):
    rows = [np.flatnonzero(rng.random(n) < share) for _ in range(m)]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return indptr, np.concatenate([*rows, []]).astype(np.int32)


SIZES = [(1, 1), (3, 31), (4, 32), (5, 33), (9, 64), (17, 100), (6, 2047), (6, 2048), (3, 2049), (2, 4100)]
LENGTHS = [1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 96, 127, 128, 129, 255, 256, 257, 511, 600, 1024]


@pytest.mark.parametrize("n_bits", LENGTHS)
def test_lookup_product_at_every_length(forced_level, n_bits):
    rng = np.random.default_rng(n_bits)
    queries, items = codes(rng, 7, n_bits), codes(rng, 70, n_bits)
    table = rng.integers(-32767, 32768, n_bits + 1).astype(np.int16)
    for x in (rng.choice([-1, 1], 70), rng.integers(-511, 512, 70)):
        x = x.astype(np.int16)
        wanted = reference.lookup_product(queries, items, n_bits, table, x)
        assert np.unique(wanted).size > 1
        np.testing.assert_array_equal(training.lookup_product(queries, items, n_bits, table, x), wanted)


@pytest.mark.parametrize(("m", "n"), SIZES)
@pytest.mark.parametrize("n_bits", [12, 40, 200])
def test_products_at_every_tail(forced_level, m, n, n_bits):
    rng = np.random.default_rng(m * n)
    queries, items, positives = codes(rng, m, n_bits), codes(rng, n, n_bits), positives_of(rng, m, n)
    tables = tuple(rng.integers(-9999, 9999, n_bits + 1).astype(np.int16) for _ in range(2))
    x = rng.choice([-1, 1], n).astype(np.int16)
    far, near = (reference.lookup_product(queries, items, n_bits, table, x) for table in tables)
    np.testing.assert_array_equal(training.lookup_product(queries, items, n_bits, tables[0], x), far)
    differences = tables[1].astype(np.int64) - tables[0]
    correction = reference.positives_product(queries, items, positives, n_bits, differences, x)
    np.testing.assert_array_equal(
        training.positives_product(queries, items, positives, n_bits, differences, x), correction
    )
    real = training.positives_product_real(
        queries, items, positives, n_bits, differences.astype(float), x.astype(float)
    )
    np.testing.assert_allclose(real, correction, atol=1e-6)
    mask = training.mask_pairs(positives, n)
    np.testing.assert_array_equal(
        training.masked_product(queries, items, mask, n_bits, tables, x), far + correction
    )
    assert (far != near).any()


@pytest.mark.parametrize("n_bits", LENGTHS)
def test_code_gradients_at_every_length(forced_level, n_bits):
    rng = np.random.default_rng(n_bits)
    queries, items, positives = codes(rng, 9, n_bits), codes(rng, 90, n_bits), positives_of(rng, 9, 90)
    tables = tuple(rng.standard_normal(n_bits + 1).astype(np.float32) for _ in range(2))
    wanted = reference.code_gradients(queries, items, positives, n_bits, tables)
    found = training.code_gradients(queries, items, positives, n_bits, tables)
    assert found.shape == (9, n_bits) and np.abs(wanted).max() > 1
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("m", "n"), [*SIZES, (31, 255), (32, 256), (33, 257), (70, 520), (0, 5), (4, 0)])
@pytest.mark.parametrize("n_bits", [3, 40, 64, 130])
def test_code_gradients_at_every_tail(forced_level, m, n, n_bits):
    rng = np.random.default_rng(m * n + 1)
    queries, items = codes(rng, m, n_bits), codes(rng, n, n_bits)
    tables = tuple(rng.standard_normal(n_bits + 1).astype(np.float32) for _ in range(2))
    for share in (0.0, 0.3, 1.0):
        positives = positives_of(rng, m, n, share)
        wanted = reference.code_gradients(queries, items, positives, n_bits, tables)
        found = training.code_gradients(queries, items, positives, n_bits, tables)
        # Sums of n numbers of size one to three in single precision.
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4 + 1e-5 * n)


def test_code_gradients_know_all_bits_from_none(forced_level):
    """Distances 0 and 64 with 64 bits: the first entry and the one beyond four registers."""
    items = np.array([[0], [2**64 - 1]], dtype=np.uint64)
    table = np.arange(65, dtype=np.float32)
    nobody = (np.zeros(3, np.int64), np.zeros(0, np.int32))
    found = training.code_gradients(items, items, nobody, 64, (table, table))
    np.testing.assert_array_equal(found, np.repeat([[64.0], [-64.0]], 64, axis=1).astype(np.float32))


def test_the_largest_sums_do_not_overflow(forced_level):
    """All entries and weights at their limits, over more than one block."""
    n = 2 * 2048 + 5
    queries, items = np.zeros((5, 1), np.uint64), np.zeros((n, 1), np.uint64)
    table = np.full(17, -32767, dtype=np.int16)
    x = np.full(n, training.MAX_WEIGHT, dtype=np.int16)
    wanted = [-32767 * training.MAX_WEIGHT * n] * 5
    assert training.lookup_product(queries, items, 16, table, x).tolist() == wanted
    mask = training.mask_pairs((np.arange(6) * n, np.tile(np.arange(n, dtype=np.int32), 5)), n)
    found = training.masked_product(queries, items, mask, 16, (np.zeros_like(table), table), x)
    assert found.tolist() == wanted


@pytest.mark.parametrize("n_bits", LENGTHS)
def test_histograms(forced_level, n_bits):
    rng = np.random.default_rng(n_bits)
    for m, n in ((7, 70), (5, 2100)):
        queries, items, positives = codes(rng, m, n_bits), codes(rng, n, n_bits), positives_of(rng, m, n)
        wanted = reference.pair_histogram(queries, items, n_bits)
        assert np.count_nonzero(wanted) > 1
        np.testing.assert_array_equal(training.pair_histogram(queries, items, n_bits), wanted)
        similar = reference.positives_histogram(queries, items, positives, n_bits)
        assert similar.sum() > 0
        np.testing.assert_array_equal(
            training.positives_histogram(queries, items, positives, n_bits), similar
        )
        if n_bits <= 17:
            np.testing.assert_array_equal(training.walsh_histogram(queries, items, n_bits), wanted)


@pytest.mark.parametrize("n_bits", [1, 2, 3, 4, 5, 11, 12, 13, 14, 17, 18])
def test_walsh_product(forced_level, n_bits):
    rng = np.random.default_rng(n_bits)
    queries, items = codes(rng, 50, n_bits), codes(rng, 80, n_bits)
    table, x = rng.standard_normal(n_bits + 1), rng.standard_normal(80)
    wanted = reference.lookup_product(queries, items, n_bits, table, x)
    found = training.walsh_product(queries, items, n_bits, table, x)
    assert np.abs(wanted).max() > 1
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_krawtchouk_is_the_transform_of_all_codes_at_a_distance():
    for n_bits in (1, 3, 6):
        every = np.arange(2**n_bits, dtype=np.uint64)
        weight = np.bitwise_count(every)
        characters = 1 - 2 * (np.bitwise_count(every[:, None] & every[None]) % 2).astype(int)
        for d in range(n_bits + 1):
            transformed = characters @ (weight == d)
            np.testing.assert_array_equal(transformed, training.krawtchouk(n_bits)[d, weight])


@pytest.mark.parametrize("n_bits", [10, 30, 100])
def test_any_number_of_threads_gives_the_same(n_bits):
    rng = np.random.default_rng(n_bits)
    m, n = 4100, 3000  # enough pairs for several threads
    queries, items, positives = codes(rng, m, n_bits), codes(rng, n, n_bits), positives_of(rng, m, n, 0.3)
    tables = tuple(rng.integers(-9999, 9999, n_bits + 1).astype(np.int16) for _ in range(2))
    x = rng.choice([-1, 1], n).astype(np.int16)
    real, floats = rng.standard_normal(n_bits + 1), rng.standard_normal(n)
    mask = training.mask_pairs(positives, n)
    slopes = tuple(rng.standard_normal(n_bits + 1).astype(np.float32) for _ in range(2))
    calls = [
        lambda: training.lookup_product(queries, items, n_bits, tables[0], x),
        lambda: training.masked_product(queries, items, mask, n_bits, tables, x),
        lambda: training.positives_product_real(queries, items, positives, n_bits, real, floats),
        lambda: training.code_gradients(queries, items, positives, n_bits, slopes),
        lambda: training.pair_histogram(queries, items, n_bits),
        lambda: training.positives_histogram(queries, items, positives, n_bits),
    ]
    if n_bits == 10:
        calls.append(lambda: training.walsh_product(queries, items, 20, np.arange(21.0), floats))
    for call in calls:
        with kernels.limit_threads(1):
            wanted = call()
        for threads in (2, 3, 7):
            with kernels.limit_threads(threads):
                assert call().tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("n_items", "width"), [(1, 16), (31, 16), (32, 32), (100, 48), (333, 80), (70, 144)])
def test_logistic_descent_is_its_twin(forced_level, n_items, width):
    rng = np.random.default_rng(width)
    features = np.zeros((n_items, width), dtype=np.float32)
    features[:, : width - 3] = rng.standard_normal((n_items, width - 3)) / np.sqrt(width)
    gain = rng.standard_normal(n_items).astype(np.float32)
    gain[1 :: max(2, n_items // 5)] = 0.0
    start = np.r_[rng.standard_normal(width - 3), 0, 0, 0].astype(np.float32)
    given = {"n_epochs": 3, "steps": (4.0, 0.2)}
    found = training.logistic_descent(features, gain, start, seed=2**63 + 11, **given)
    orders = reference.orders_of(2**63 + 11, n_items, 3)
    wanted = reference.descend_in_order(features, gain, start, orders, **given)
    assert np.linalg.norm(wanted - start) > 1e-3 * np.linalg.norm(start)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-3 * np.abs(wanted).max())
    assert not found[width - 3 :].any()


def test_orders_are_permutations_that_differ():
    first, second = reference.orders_of(5, 100, 2)
    assert sorted(first) == sorted(second) == list(range(100))
    assert (first != second).any()


@pytest.mark.parametrize("n_bits", [1, 64, 65, 128])
def test_bits_are_set_and_dropped(n_bits):
    rng = np.random.default_rng(n_bits)
    signs = rng.choice([-1, 1], (20, n_bits)).astype(np.int8)
    words = np.zeros((20, -(-n_bits // 64)), dtype=np.uint64)
    for bit in range(n_bits):
        training.set_bit(words, bit, np.ascontiguousarray(signs[:, bit]))

    def bits():
        return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")

    np.testing.assert_array_equal(bits()[:, :n_bits], signs > 0)
    gone = n_bits // 2
    training.drop_bit(words, gone, n_bits - 1)
    kept = signs.copy()
    kept[:, gone] = signs[:, -1]
    np.testing.assert_array_equal(bits()[:, : n_bits - 1], kept[:, :-1] > 0)
    assert not bits()[:, n_bits - 1 :].any()


def test_shapes_that_would_leave_the_arrays_are_refused():
    words = np.zeros((4, 1), dtype=np.uint64)
    table, x = np.zeros(9, dtype=np.int16), np.ones(4, dtype=np.int16)
    calls = [
        lambda: training.lookup_product(words, words, 9, table, x),
        lambda: training.lookup_product(words, words, 8, table, x[:3]),
        lambda: training.lookup_product(words, np.zeros((4, 2), np.uint64), 8, table, x),
        lambda: training.lookup_product(words, words, 65, np.zeros(66, np.int16), x),
        lambda: training.positives_product(
            words, words, (np.array([0, 1, 1, 1, 2]), np.zeros(1, np.int32)), 8, np.zeros(9, np.int64), x
        ),
        lambda: training.masked_product(words, words, np.zeros((4, 3), np.uint8), 8, (table, table), x),
        lambda: training.walsh_product(words, words, 8, np.zeros(9), np.ones(5)),
        lambda: training.set_bit(words, 64, np.ones(4, np.int8)),
        lambda: training.drop_bit(words, 5, 64),
    ]
    for call in calls:
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError):
        training.lookup_product(words, words, 8, table.astype(np.int32), x)
