"""Codes of a linear map are the signs of float64 arithmetic, whatever the dtype, the blocks and the level."""

import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from asymhash import BinaryCodes, kernels, linear_map
from asymhash.linear_map import LinearMap


def naive_bools(vectors, weights, offset):
    """Signs by NumPy's own sums, one bit at a time: no product, no BLAS."""
    rows = vectors.astype(np.float64)
    return np.stack([(rows * w).sum(axis=1) + b >= 0 for w, b in zip(weights, offset, strict=True)], axis=1)


def weights_of(n_bits, d, seed=1):
    return np.random.default_rng(seed).standard_normal((n_bits, d))


def hard(kind, d=37, n_bits=70):
    """Vectors, weights and offsets that a float32 product alone gets wrong, or that have zeros to get right."""
    rng = np.random.default_rng(0)
    X, W, b = rng.standard_normal((300, d)), weights_of(n_bits, d), rng.standard_normal(n_bits)
    if kind == "far away":  # mean folded into the offset, as Preparation does it: digits cancel
        X = X.astype(np.float32) + np.float32(4096)
        b = -W @ X.mean(axis=0, dtype=np.float64)
    elif kind == "tiny margins":  # every projection within 1e-9 of zero, far beyond float64 rounding
        b = -(X @ W.T).mean(axis=0)
        X = np.repeat(X[:1], 300, axis=0) + 1e-9 * X
        b = -(X[0] @ W.T)
    elif kind == "duplicates":
        X = np.repeat(X[:7], 43, axis=0).astype(np.float32)
    elif kind == "integers with zeros":
        X, W, b = rng.integers(-3, 4, (300, d)), np.sign(W), np.zeros(n_bits)
    elif kind == "uint8":
        X = rng.integers(0, 256, (300, d)).astype(np.uint8)
        b = -W @ X.mean(axis=0)
    elif kind == "float16":
        X = X.astype(np.float16)
    elif kind == "denormal float16":
        X, b = (X * 1e-6).astype(np.float16), b * 1e-6
    elif kind == "int8":
        X = rng.integers(-128, 128, (300, d)).astype(np.int8)
    elif kind == "int64":  # not all of them are float64 numbers
        X = rng.integers(-(2**62), 2**62, (300, d)) + 2**61
        b = -W @ X.mean(axis=0)
    elif kind == "big-endian":
        X = X.astype(">f4")
    elif kind == "beyond float32":
        X, W, b = X * 1e60, W * 1e-30, b * 1e30
    elif kind == "below float32":
        X, W, b = X * 1e-60, W * 1e-250, np.zeros(n_bits)
    elif kind == "cancelling overflow":  # partial sums leave float32, the whole does not
        X = np.full((300, d), np.float32(3e38))
        W = np.where(np.arange(d) < d // 2, 1.0, -1.0) * (1 + 0.1 * rng.random((n_bits, d)))
        W[:, -1] = rng.standard_normal(n_bits)
    elif kind == "zero rows":
        X[::2], W[3], b[:5] = 0, 0, 0
    elif kind == "one feature":
        X, W = X[:, :1], W[:, :1]
        b = -W[:, 0] * X[5, 0]
    return X, W, b


KINDS = [
    "far away",
    "tiny margins",
    "duplicates",
    "integers with zeros",
    "uint8",
    "float16",
    "denormal float16",
    "int8",
    "int64",
    "big-endian",
    "beyond float32",
    "below float32",
    "cancelling overflow",
    "zero rows",
    "one feature",
]


@pytest.mark.parametrize("level", kernels.levels())
@pytest.mark.parametrize("kind", KINDS)
def test_codes_are_those_of_float64(kind, level, monkeypatch):
    X, W, b = hard(kind)
    wanted = BinaryCodes.from_bools(naive_bools(X, W, b))
    assert kind == "tiny margins" or 0.05 < wanted.to_bools().mean() < 0.95
    found = LinearMap(W, b)
    with kernels.force_level(level):
        for values in (1 << 18, 1, 300):
            for limit in ("_BLOCK_VALUES", "_STREAMED_VALUES", "_CONVERTED_VALUES", "_DIRECT_NUMBERS"):
                monkeypatch.setattr(linear_map, limit, values)
            for vectors in (X, np.asfortranarray(X), X[::-1][::-1]):
                assert found.encode(vectors) == wanted
                assert BinaryCodes.from_bools(found.project(vectors) >= 0) == wanted
    np.testing.assert_allclose(
        found.project(X),
        X.astype(np.float64) @ W.T + b,
        rtol=1e-9,
        atol=1e-9 * (np.abs(X @ W.T).max() + np.abs(b).max()),
    )


def test_the_hard_cases_are_hard():
    wrong = []
    for kind in ("far away", "integers with zeros", "tiny margins", "cancelling overflow"):
        X, W, b = hard(kind)
        with np.errstate(all="ignore"):
            single = X.astype(np.float32) @ W.T.astype(np.float32) + b.astype(np.float32) >= 0
        wrong.append(np.count_nonzero(single != naive_bools(X, W, b)))
    assert wrong[0] > 0
    assert wrong[2] > 1000
    assert wrong[3] > 1000


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.uint8, np.int64])
@pytest.mark.parametrize("n_bits", [1, 63, 64, 65, 130])
def test_only_ties_are_computed_by_definition(dtype, n_bits, monkeypatch):
    X = (np.random.default_rng(3).standard_normal((5000, 64)) * 30 + 100).astype(dtype)
    W = weights_of(n_bits, 64)
    b = -W @ X.mean(axis=0, dtype=np.float64)
    b[0] = -(X[7].astype(np.float64) * W[0]).sum()
    sizes = []
    by_definition = LinearMap._by_definition

    def counted(self, vectors, items, bits):
        sizes.append(items.size)
        return by_definition(self, vectors, items, bits)

    monkeypatch.setattr(LinearMap, "_by_definition", counted)
    assert LinearMap(W, b).encode(X) == BinaryCodes.from_bools(naive_bools(X, W, b))
    assert 0 < sum(sizes) < 5


def test_threads_change_nothing():
    X, W = np.random.default_rng(2).standard_normal((20_000, 128)).astype(np.float32), weights_of(40, 128)
    found = LinearMap(W, np.zeros(40))
    results = []
    for n_threads in (1, 2, 3):
        with threadpool_limits(n_threads, user_api="blas"), kernels.limit_threads(n_threads):
            results.append((found.encode(X), found.project(X) >= 0))
    for codes, signs in results:
        assert codes == results[0][0] == BinaryCodes.from_bools(signs)


MEASURE = """
import resource, sys, numpy as np
from asymhash.linear_map import LinearMap
X = np.ones((400_000, 128), dtype=sys.argv[1])
X[:, 0] = np.arange(len(X)) - 200_000
linear_map = LinearMap(np.eye(32, 128), np.zeros(32))
linear_map.encode(X[:100])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(linear_map.encode(X)) == 400_000
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.parametrize("dtype", ["float32", "uint8", "float64"])
def test_memory_is_that_of_the_blocks(dtype):
    """All vectors in float32 are 195 MiB more for uint8, their projections 49 MiB; half the signs are exact ties."""
    run = subprocess.run([sys.executable, "-c", MEASURE, dtype], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 40
