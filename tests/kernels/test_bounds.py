"""No kernel reads past the end of the codes: a memory-mapped file may end where the mapped memory does."""

import subprocess
import sys

import pytest

from asymhash import kernels

# The codes end at the last byte before a page that must not be touched. In an interpreter of its own,
# because a kernel that fails this test takes the process with it.
AT_THE_EDGE = """
import ctypes, mmap
import numpy as np
from asymhash import kernels
from asymhash.kernels import reference, training

libc = ctypes.CDLL(None, use_errno=True)
size = 16 * mmap.PAGESIZE
memory = mmap.mmap(-1, size + mmap.PAGESIZE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
assert libc.mprotect(ctypes.c_void_p(address + size), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
rng = np.random.default_rng(0)
checked = 0
with kernels.force_level({level!r}):
    for n_words in (1, 2, 3, 16):
        for n_items in (1, 3, 7, 9, 100, 257):
            n_bytes = 8 * n_words * n_items
            items = np.frombuffer(memory, np.uint64, n_words * n_items, size - n_bytes)
            items = items.reshape(n_items, n_words)
            items[...] = rng.integers(0, 2**64, items.shape, dtype=np.uint64)
            queries = items[-1:]
            expected = reference.hamming_distances(queries, items)
            assert np.array_equal(kernels.hamming_distances(queries, items), expected)
            counts = kernels.distance_counts(queries, items, 64 * n_words)
            assert counts.sum() == n_items
            nobody = np.zeros(len(queries) + 1, np.int64), np.zeros(0, np.int32)
            ones = np.ones(64 * n_words + 1, np.float32)
            found = training.code_gradients(queries, items, nobody, 64 * n_words, (ones, ones))
            assert np.abs(found).max() <= n_items
            allowed = np.full(-(-n_items // 64), 2**64 - 1, np.uint64)
            for bitmap in (None, allowed):
                for several in (queries, items[:3]):
                    found = kernels.nearest_items(several, items, 5, allowed=bitmap)
                    expected = reference.nearest_items(several, items, 5)
                    assert np.array_equal(found[0], expected[0]) and np.array_equal(found[1], expected[1])
            checked += 1
print(checked)
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="needs mprotect and 4 KB of untouchable memory"
)
@pytest.mark.parametrize("level", kernels.levels())
def test_kernels_stop_at_the_end_of_the_codes(level):
    program = AT_THE_EDGE.format(level=level)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or f"ended by signal {-done.returncode}"
    assert done.stdout == "24\n"
