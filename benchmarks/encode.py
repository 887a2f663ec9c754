"""Encoding by a linear map, packing included, against the bare NumPy product of the same shape in the same run.

    python benchmarks/encode.py
    python benchmarks/encode.py --items 200000 --features 512 --bits 64 --dtype float32 --threads 1

The ratio is the time of `X @ W.T` (dtype of X, floats as they are, other types converted beforehand) over the time
of `encode`; 1.0 is the speed of the product alone. Both are run in turn and the best of the repeats counts, because
other programs on the machine disturb one run more than the next. `--min-ratio 0.7` makes the exit code 1 below it.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from asymhash.kernels import limit_threads, usable_cores
from asymhash.linear_map import LinearMap

SHAPES = [(1_000_000, 128, bits) for bits in (16, 32, 64, 128)] + [(200_000, 512, 64)]


def made(n: int, d: int, dtype: np.dtype) -> np.ndarray:
    """Draw vectors block by block, so that no copy in another dtype is ever whole."""
    rng = np.random.default_rng(0)
    vectors = np.empty((n, d), dtype=dtype)
    for first in range(0, n, 10_000):
        block = rng.standard_normal((min(10_000, n - first), d), dtype=np.float32)
        vectors[first : first + 10_000] = block * 20 + 128 if dtype.kind == "u" else block
    return vectors


def measured(vectors: np.ndarray, n_bits: int, repeats: int) -> tuple[float, float]:
    """Return the best times of the bare product and of `encode`."""
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((n_bits, vectors.shape[1]))
    linear_map = LinearMap(weights, -weights @ vectors[:1000].mean(axis=0, dtype=np.float64))
    kind = np.float64 if vectors.dtype == np.float64 else np.float32
    numbers, bare_weights = vectors.astype(kind, copy=False), weights.astype(kind)
    bare, ours = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        numbers @ bare_weights.T
        bare.append(time.perf_counter() - start)
        start = time.perf_counter()
        linear_map.encode(vectors)
        ours.append(time.perf_counter() - start)
    return min(bare), min(ours)


def main() -> int:
    """Print one line for each shape and dtype."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--dtype", action="append", help="default: float32 float64 uint8 float16")
    parser.add_argument("--threads", type=int, help="default: all cores")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--min-ratio", type=float, default=0.0)
    arguments = parser.parse_args()
    shapes = [(arguments.items, arguments.features, arguments.bits)] if arguments.items else SHAPES
    n_threads = arguments.threads or usable_cores()
    worst = float("inf")
    print("   items features bits    dtype  product   encode  M items/s  ratio")
    for dtype in arguments.dtype or ("float32", "float64", "uint8", "float16"):
        for n, d, n_bits in shapes:
            with threadpool_limits(n_threads, user_api="blas"), limit_threads(n_threads):
                bare, ours = measured(made(n, d, np.dtype(dtype)), n_bits, arguments.repeats)
            worst = min(worst, bare / ours)
            print(
                f"{n:8} {d:8} {n_bits:4} {dtype:>8} {bare:7.3f}s {ours:7.3f}s {n / ours / 1e6:10.2f}", end=""
            )
            print(f" {bare / ours:6.2f}", flush=True)
    return int(worst < arguments.min_ratio)


if __name__ == "__main__":
    sys.exit(main())
