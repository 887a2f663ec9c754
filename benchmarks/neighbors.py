"""Exact neighbours against the bare NumPy product of the same shape in the same run.

    python benchmarks/neighbors.py                                  # 10,000 x 1,000,000 x 128 and 20,019 x 512
    python benchmarks/neighbors.py --queries 10000 --items 1000000 --features 128 --average 1000
    python benchmarks/neighbors.py --queries 22000 --features 512 --share 0.3

The product `queries @ items.T` is float32, in blocks of 2,048 x 2,048 with as many BLAS threads as there are; its
time is the mean of one run before and one after, because other programs disturb one more than the other. The ratio
is its time over that of `neighbors`. Memory is the peak of the whole process.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np

from asymhash.similarity import nearest, neighbors

BLOCK = 2048


def product_time(queries: np.ndarray, items: np.ndarray) -> float:
    """Return the seconds of all products, none of them kept."""
    out = np.empty((BLOCK, BLOCK), dtype=np.float32)
    start = time.perf_counter()
    for first in range(0, len(queries), BLOCK):
        rows = queries[first : first + BLOCK]
        for begin in range(0, len(items), BLOCK):
            columns = items[begin : begin + BLOCK]
            np.matmul(rows, columns.T, out=out[: len(rows), : len(columns)])
    return time.perf_counter() - start


def main() -> int:
    """Print one line for each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int)
    parser.add_argument("--items", type=int, help="default: the queries themselves")
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--average", type=float, action="append")
    parser.add_argument("--share", type=float, help="average as a share of the items")
    parser.add_argument("--rule", default="pooled", choices=("pooled", "mean_kth", "nearest"))
    parser.add_argument("--no-product", action="store_true", help="leave out the bare product, and the ratio")
    arguments = parser.parse_args()
    shapes = [(10_000, 1_000_000, 128), (20_019, None, 512)]
    if arguments.queries:
        shapes = [(arguments.queries, arguments.items, arguments.features)]
    print(" queries    items features  average  product neighbors  G pairs/s  ratio  peak GiB")
    for m, n, d in shapes:
        rng = np.random.default_rng(0)
        items = None if n is None else rng.standard_normal((n, d), dtype=np.float32)
        queries = rng.standard_normal((m, d), dtype=np.float32)
        others = queries if items is None else items
        averages = arguments.average or [50.0]
        if arguments.share:
            averages = [round(arguments.share * len(others))]
        for average in averages:
            bare = [] if arguments.no_product else [product_time(queries, others)]
            start = time.perf_counter()
            if arguments.rule == "nearest":
                nearest(queries, others, int(average))
            else:
                average = average if arguments.rule == "pooled" else int(average)
                neighbors(queries, items, average=average, rule=arguments.rule)
            ours = time.perf_counter() - start
            if bare:
                bare.append(product_time(queries, others))
            mean = sum(bare) / 2
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(f"{m:8} {len(others):8} {d:8} {average:8.0f} {mean:7.1f}s {ours:8.1f}s", end="")
            print(f" {m * len(others) / ours / 1e9:10.3f} {mean / ours:6.2f} {peak:9.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
