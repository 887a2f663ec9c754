"""The training product M x: our kernels against NumPy, and against each other, in one run.

    python benchmarks/products.py                # about a minute
    python benchmarks/products.py --threads 2

NumPy's way is a matrix product of signs in blocks that stay in the cache, a look-up of every inner product and a
product with x; the best of several block sizes counts. All are interleaved, the best of repeats is taken, and results
are compared. The last table gives the constants by which `objective/pairs.py` chooses between the kernels.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from asymhash import kernels
from asymhash.codes import BinaryCodes
from asymhash.kernels import training

BLOCKS = ((64, 1024), (256, 1024), (128, 4096), (512, 512))


def main() -> None:
    """Print three tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1, help="of both sides (1)")
    parser.add_argument("--repeats", type=int, default=5, help="the best of so many counts (5)")
    options = parser.parse_args()
    with kernels.limit_threads(options.threads), threadpool_limits(options.threads):
        _against_numpy(options.repeats, options.threads)
        _transform_against_lookup(options.repeats)
        _constants(options.repeats)


def _problem(
    m: int, n: int, k: int
) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int16], NDArray[np.int16]]:
    rng = np.random.default_rng(k)
    u, v = (rng.choice(np.array([-1, 1], dtype=np.int8), (size, k)) for size in (m, n))
    table = rng.integers(-32767, 32768, k + 1).astype(np.int16)
    return u, v, table, rng.choice(np.array([-1, 1], dtype=np.int16), n)


def _best(repeats: int, *calls: Callable[[], object]) -> list[float]:
    """Seconds of each call, interleaved so that all see the same machine."""
    seconds = [np.inf] * len(calls)
    for _ in range(repeats):
        for place, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            seconds[place] = min(seconds[place], time.perf_counter() - begin)
    return seconds


def _numpy_product(
    u: NDArray[np.float32],
    v: NDArray[np.float32],
    table: NDArray[np.float32],
    x: NDArray[np.float32],
    rows: int,
    columns: int,
) -> NDArray[np.float64]:
    k = u.shape[1]
    total = np.zeros(len(u))
    for i in range(0, len(u), rows):
        for j in range(0, len(v), columns):
            inner = u[i : i + rows] @ v[j : j + columns].T
            # Distances as small whole numbers: take is fastest by intp, and converting costs less than that saves.
            distances = ((k - inner) * 0.5).astype(np.intp)
            total[i : i + rows] += table.take(distances) @ x[j : j + columns]
    return total


def _against_numpy(repeats: int, threads: int) -> None:
    n = 20_000
    print(f"M x, {n:,} x {n:,} pairs, {threads} thread(s)")
    print(f"{'bits':>5} {'ours':>10} {'G pairs/s':>10} {'NumPy':>10} {'ratio':>7}")
    for k in (8, 16, 32, 64):
        u, v, table, x = _problem(n, n, k)
        queries, items = (BinaryCodes.from_signs(side).words for side in (u, v))
        floats = [side.astype(np.float32) for side in (u, v)]
        floats += [table.astype(np.float32), x.astype(np.float32)]
        part = n // 10  # of the queries: NumPy's time is that of the rows
        calls = [lambda: training.lookup_product(queries, items, k, table, x)]
        calls += [
            lambda size=size: _numpy_product(floats[0][:part], *floats[1:], *size)  # type: ignore[misc]
            for size in BLOCKS
        ]
        wanted = _numpy_product(floats[0][:part], *floats[1:], *BLOCKS[0])
        found = training.lookup_product(queries, items, k, table, x)[:part]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())
        ours, *theirs = _best(repeats, *calls)
        numpy = 10 * min(theirs)
        print(
            f"{k:>5} {ours * 1e3:>7.1f} ms {n * n / ours / 1e9:>10.1f} {numpy * 1e3:>7.0f} ms {numpy / ours:>6.0f}x"
        )


def _transform_against_lookup(repeats: int) -> None:
    print("\nWalsh-Hadamard transform against look-up")
    print(f"{'items':>9} {'bits':>5} {'look-up':>10} {'transform':>11} {'ratio':>7} {'difference':>11}")
    for n, k in (
        (2_000, 8),
        (4_000, 16),
        (20_000, 16),
        (100_000, 16),
        (20_000, 20),
        (100_000, 20),
        (100_000, 24),
    ):
        u, v, table, x = _problem(n, n, k)
        queries, items = (BinaryCodes.from_signs(side).words for side in (u, v))
        real, weights = table.astype(np.float64), x.astype(np.float64)
        lookup, transform = _best(
            4 * repeats,  # the transform is so short that its first calls measure the pages of its memory
            lambda: training.lookup_product(queries, items, k, table, x),
            lambda: training.walsh_product(queries, items, k, real, weights),
        )
        found = training.walsh_product(queries, items, k, real, weights)
        wanted = training.lookup_product(queries, items, k, table, x)
        error = np.abs(found - wanted).max() / np.abs(wanted).max()
        times = f"{lookup * 1e3:>7.2f} ms {transform * 1e3:>8.2f} ms {lookup / transform:>6.1f}x"
        print(f"{n:>9,} {k:>5} {times} {error:>11.1e}")


def _constants(repeats: int) -> None:
    print("\nnanoseconds: a pair of the look-up kernel, a pair counted, a similar pair")
    n = 8_000
    rng = np.random.default_rng(0)
    indices = np.sort(rng.integers(0, n, (n, 50)), axis=1).astype(np.int32).ravel()
    positives = np.arange(0, n * 50 + 1, 50, dtype=np.int64), indices
    for k in (16, 32, 48, 64, 128):
        u, v, table, x = _problem(n, n, k)
        queries, items = (BinaryCodes.from_signs(side).words for side in (u, v))
        wide = table.astype(np.int64)
        pair, counted, similar = _best(
            repeats,
            lambda: training.lookup_product(queries, items, k, table, x),
            lambda: training.pair_histogram(queries, items, k),
            lambda: training.positives_product(queries, items, positives, k, wide, x),
        )
        print(
            f"{k:>4} bits {pair / n**2 * 1e9:>8.4f} {counted / n**2 * 1e9:>8.3f} {similar / (50 * n) * 1e9:>8.2f}"
        )
    print("nanoseconds: an entry of the transform, beside 1000 items")
    for k in (10, 14, 16, 18, 20, 22, 24):
        u, v, table, x = _problem(1000, 1000, k)
        queries, items = (BinaryCodes.from_signs(side).words for side in (u, v))
        real, weights = table.astype(np.float64), x.astype(np.float64)
        (seconds,) = _best(repeats, lambda: training.walsh_product(queries, items, k, real, weights))
        print(f"{k:>4} bits {seconds / 2**k * 1e9:>8.2f}")


if __name__ == "__main__":
    main()
