"""The kernel that encodes, against its twin at every instruction level, and what its bounds promise."""

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from asymhash import kernels
from asymhash.errors import InvalidArgument, InvalidType
from asymhash.kernels import SignMap, reference

# Around the widths of registers, of groups of bits, of a word, and of a chain of 64 features.
FEATURES = [1, 2, 7, 15, 16, 17, 31, 63, 64, 65, 100, 128, 129, 300]
BITS = [1, 3, 15, 16, 17, 32, 33, 48, 49, 63, 64, 65, 80, 97, 128, 130]
ITEMS = [1, 2, 5, 6, 11, 12, 13, 47, 48, 49, 100]  # around the rows of a step and of a panel
DTYPES = ["float16", "float32", "float64", "uint8", "int8"]


@pytest.fixture(params=["portable", "avx2", "avx512"])
def forced_level(request):
    if request.param not in kernels.levels():
        pytest.skip(f"this machine has no {request.param}")
    with kernels.force_level(request.param):
        yield request.param


def encoded(vectors, sign_map, *, by=kernels.encode_signs):
    # Neither zeros nor ones: every word must be written.
    words = np.full((len(vectors), -(-len(sign_map.exact_offset) // 64)), 0x5555AAAA5555AAAA, np.uint64)
    return words, by(vectors, sign_map, words)


def assert_equals_reference(vectors, sign_map):
    """Return the open signs, which are compared like the words."""
    words, open_ = encoded(vectors, sign_map)
    expected = encoded(vectors, sign_map, by=reference.encode_signs)
    np.testing.assert_array_equal(words, expected[0])
    np.testing.assert_array_equal(open_, expected[1])
    assert open_.dtype == np.int64
    return open_


def whole_numbers(n, d, n_bits, dtype, seed=0):
    """Vectors and a map of small whole numbers: exact in float32 in any order, and often at the threshold."""
    rng = np.random.default_rng(seed)
    low = 0 if dtype == "uint8" else -3
    weights = rng.integers(-3, 4, (n_bits, d)).astype(np.float64)
    return rng.integers(low, 4, (n, d)).astype(dtype), weights, rng.integers(-3, 4, n_bits).astype(np.float64)


def left_open_by_float32(sign_map, *, slope, floor):
    """A map with given bounds in float32, and none that float64 could keep: so open is what float32 leaves."""
    like = np.ones_like(sign_map.slope)
    return replace(
        sign_map, slope=like * np.float32(slope), floor=like * np.float32(floor), exact_slope=np.inf
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_bits", BITS)
def test_encode_signs_equals_reference(forced_level, dtype, n_bits):
    ties, near, entries = 0, 0, 0
    for i, d in enumerate(FEATURES):
        n = ITEMS[(i + n_bits) % len(ITEMS)]
        vectors, weights, offset = whole_numbers(n, d, n_bits, dtype, seed=d)
        sign_map = SignMap.of(weights, offset)
        ties += assert_equals_reference(vectors, sign_map).size
        # Half a unit beyond the bounds, where no rounding of theirs can matter.
        wide = left_open_by_float32(sign_map, slope=2.0**-8, floor=0.5)
        near += assert_equals_reference(vectors, wide).size
        entries += n * n_bits
    assert 0 < ties < near < entries


@pytest.mark.parametrize("n", ITEMS)
def test_every_number_of_rows(forced_level, n):
    rng = np.random.default_rng(n)
    for d, n_bits in ((20, 40), (130, 70)):
        sign_map = SignMap.of(rng.standard_normal((n_bits, d)), rng.standard_normal(n_bits))
        assert_equals_reference(rng.standard_normal((n, d)).astype(np.float32), sign_map)
    assert encoded(np.zeros((0, d)), sign_map)[1].size == 0


def test_many_features_and_bits(forced_level):
    rng = np.random.default_rng(0)
    for d, n_bits in ((4100, 70), (70, 1024)):
        weights = rng.standard_normal((n_bits, d))
        vectors = (rng.standard_normal((50, d)) + 5).astype(np.float32)
        sign_map = SignMap.of(weights, -weights @ vectors.mean(axis=0, dtype=np.float64))
        assert_equals_reference(vectors, sign_map)
        rough = replace(sign_map, exact_slope=np.inf)
        assert 0 < encoded(vectors, rough)[1].size < 0.01 * 50 * n_bits


@pytest.mark.parametrize("dtype", DTYPES[:3])
def test_what_is_no_number_or_beyond_float32_is_never_sure(forced_level, dtype):
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((60, 37)).astype(dtype)
    special = [np.nan, np.inf, -np.inf] + [1e30, -1e200, 1e-320] * (dtype == "float64")
    special += [3e38, 1e-45] * (dtype == "float32")
    vectors[rng.random(vectors.shape) < 0.02] = rng.choice(np.array(special, dtype=dtype))
    vectors[5, 3], vectors[6, 4] = np.nan, np.inf
    sign_map = SignMap.of(rng.standard_normal((70, 37)), rng.standard_normal(70))
    open_ = assert_equals_reference(vectors, sign_map)
    assert set(range(5 * 70, 7 * 70)) <= set(open_.tolist())
    with np.errstate(over="ignore"):
        beyond = ~np.isfinite(vectors.astype(np.float32)).all(axis=1)
    rough = encoded(vectors, replace(sign_map, exact_slope=np.inf))[1]
    assert set(np.flatnonzero(np.repeat(beyond, 70))) <= set(rough.tolist())
    assert rough.size < vectors.shape[0] * 70


def test_every_float16_is_read_right(forced_level):
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves)]
    thresholds = np.random.default_rng(0).choice(finite, 200, replace=False)
    thresholds[:6] = finite[[0, 1, 1023, 1024, 0x8001 - 1024, 0x7BFF]]  # zero, denormals, the largest
    # One feature: float32 leaves open what equals the threshold, and what is no number.
    sign_map = SignMap.of(np.ones((200, 1)), -thresholds.astype(np.float64))
    exact = left_open_by_float32(sign_map, slope=0, floor=0)
    found = encoded(halves[:, None], exact)
    np.testing.assert_array_equal(found[0], encoded(halves[:, None].astype(np.float64), exact)[0])
    with np.errstate(invalid="ignore"):
        expected = (halves[:, None] == thresholds) | ~np.isfinite(halves[:, None])
    np.testing.assert_array_equal(found[1], np.flatnonzero(expected))
    assert_equals_reference(halves[:, None], sign_map)


@pytest.mark.parametrize("d", [64, 200, 1000])
def test_bounds_hold_where_float32_is_wrong(forced_level, d):
    """Digits cancel: float32 gets many signs wrong, and leaves all of them open."""
    rng = np.random.default_rng(d)
    vectors = (rng.standard_normal((3000, d)) + 3000).astype(np.float32)
    weights = rng.standard_normal((40, d))
    sign_map = SignMap.of(weights, -weights @ vectors.mean(axis=0, dtype=np.float64))
    words, open_ = encoded(vectors, replace(sign_map, exact_slope=np.inf))
    blind = left_open_by_float32(sign_map, slope=0, floor=0)  # but for exact ties, the signs of float32 alone
    wrong = encoded(vectors, blind)[0] ^ words
    wrong = np.unpackbits(wrong.view(np.uint8), axis=1, bitorder="little")[:, :40]
    assert np.count_nonzero(wrong) > 5
    assert set(np.flatnonzero(wrong)) <= set(open_.tolist())
    assert encoded(vectors, sign_map)[1].size == 0
    assert open_.size < 0.6 * wrong.size


def test_threads_change_nothing(forced_level):
    vectors, weights, offset = whole_numbers(20_000, 100, 60, "float32")
    sign_map = SignMap.of(weights, offset)
    words, open_ = encoded(vectors, sign_map)
    assert open_.size > 10_000
    for n_threads in (1, 2, 3, 7):
        again = np.empty_like(words)
        found = kernels.encode_signs(vectors, sign_map, again, n_threads=n_threads)
        np.testing.assert_array_equal(again, words)
        np.testing.assert_array_equal(found, open_)


def test_vectors_may_lie_anyhow(tmp_path):
    vectors, weights, offset = whole_numbers(50, 20, 10, "float32")
    sign_map = SignMap.of(weights, offset)
    expected = encoded(vectors, sign_map)
    np.save(tmp_path / "vectors.npy", vectors)
    shifted = np.zeros(vectors.nbytes + 1, np.uint8)[1:]
    shifted[:] = vectors.view(np.uint8).ravel()
    wider = np.zeros((100, 40), np.float32)
    wider[::2, ::2] = vectors
    read_only = vectors.copy()
    read_only.flags.writeable = False
    for same in (
        np.asfortranarray(vectors),
        np.load(tmp_path / "vectors.npy", mmap_mode="r"),
        shifted.view(np.float32).reshape(50, 20),
        wider[::2, ::2],
        read_only,
    ):
        words, open_ = encoded(same, sign_map)
        np.testing.assert_array_equal(words, expected[0])
        np.testing.assert_array_equal(open_, expected[1])


# The vectors end at the last byte before a page that must not be touched.
AT_THE_EDGE = """
import ctypes, mmap
import numpy as np
from asymhash import kernels
from asymhash.kernels import SignMap

libc = ctypes.CDLL(None, use_errno=True)
size = 32 * mmap.PAGESIZE
memory = mmap.mmap(-1, size + mmap.PAGESIZE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
assert libc.mprotect(ctypes.c_void_p(address + size), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
rng = np.random.default_rng(0)
checked = 0
with kernels.force_level({level!r}):
    for dtype in {dtypes!r}:
        for n, d in ((1, 1), (3, 7), (49, 65), (50, 130)):
            n_bytes = n * d * np.dtype(dtype).itemsize
            vectors = np.frombuffer(memory, dtype, n * d, size - n_bytes).reshape(n, d)
            vectors[...] = rng.integers(0, 9, (n, d))
            words, again = np.empty((2, n, 1), np.uint64)
            sign_map = SignMap.of(np.ones((20, d)), -rng.integers(0, 9 * d, 20).astype(float))
            open_ = kernels.encode_signs(vectors, sign_map, words)
            assert np.array_equal(kernels.encode_signs(vectors.copy(), sign_map, again), open_)
            assert np.array_equal(again, words)
            checked += 1
print(checked)
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="needs mprotect and 4 KB of untouchable memory"
)
@pytest.mark.parametrize("level", kernels.levels())
def test_encode_signs_stops_at_the_end_of_the_vectors(level):
    program = AT_THE_EDGE.format(level=level, dtypes=DTYPES)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or f"ended by signal {-done.returncode}"
    assert done.stdout == "20\n"


def test_wrong_arguments_are_refused_by_name():
    sign_map = SignMap.of(np.ones((2, 3)), np.zeros(2))
    vectors, words = np.zeros((4, 3)), np.zeros((4, 1), np.uint64)
    message = r"^encode_signs: vectors must be of a dtype of float16, .*, int8, got dtype uint16\.$"
    with pytest.raises(InvalidType, match=message):
        kernels.encode_signs(vectors.astype(np.uint16), sign_map, words)
    with pytest.raises(InvalidType, match=r"got dtype >f4"):
        kernels.encode_signs(vectors.astype(">f4"), sign_map, words)
    with pytest.raises(InvalidArgument, match=r"vectors must be of shape \(n, 3\), got shape \(4, 2\)"):
        kernels.encode_signs(vectors[:, :2], sign_map, words)
    for wrong in (words[:3], words.astype(np.int64), np.zeros((8, 1), np.uint64)[::2]):
        message = re.escape("words must be a C-contiguous uint64 array of shape (4, 1), got ")
        with pytest.raises(InvalidArgument, match=message):
            kernels.encode_signs(vectors, sign_map, wrong)
    with pytest.raises(InvalidArgument, match=r"^encode_signs: n_threads must be"):
        kernels.encode_signs(vectors, sign_map, words, n_threads=0)
