"""Exact search of asymhash beside FAISS, usearch and NumPy, measured in one run.

    pip install -e '.[bench]'
    python benchmarks/search.py                                 # the whole table, about 15 minutes
    python benchmarks/search.py --items 1000000 --bits 64       # a part of it
    python benchmarks/search.py --output search.json            # writes the record too

Codes are uniform random bits. All contenders take turns, each is the best of its calls, so other work on the machine
changes the times more than the ratios. FAISS is IndexBinaryFlat at the best of its instruction levels and of
its two ways to select (heap, counting), chosen anew for every row. Before anything is timed, the answers are compared:
all distances must be equal, and the ids where no tie leaves a choice. "of read" is the speed at which codes pass one
query, as a share of the speed at which NumPy sums the same memory with as many threads.

With --check the exit code is 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

import faiss
import numpy as np
from usearch.index import MetricKind
from usearch.index import search as usearch_search

from asymhash import BinaryCodes, kernels, nearest_codes

FAISS_LEVELS = ("NONE", "AVX2", "AVX512", "AVX512_VPOPCNT")
SECONDS = 1.0  # of repeats for each contender in a row
MIN_TURNS = 4
# A turn is some calls, so long and so many at least: FAISS's OpenMP threads go on spinning for some 10 ms after a call,
# on the core that the next contender wants. With two threads on two cores, ours took 3.0 ms right behind them, else
# 1.5.
TURN_SECONDS, TURN_CALLS = 0.03, 2
PEER_K = 10  # usearch and NumPy are so much slower that one k says it
PEER_ITEMS = 10**6  # and one size
BATCH_TARGETS = {64: 8.0, 128: 5.0, 256: 3.0}  # times FAISS, for 100 queries over 10^6 codes
SINGLE_TARGET, READ_TARGET = (
    2.0,
    0.75,
)  # times FAISS, share of the read speed; one query, 10^7 codes of 64 bits


@dataclass
class Row:
    """One line of the table."""

    bits: int
    items: int
    queries: int
    k: int
    threads: int
    ours: float
    faiss: float
    faiss_way: str
    of_read: float | None = None
    peers: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """How many times faster than FAISS."""
        return self.faiss / self.ours

    def target(self) -> float:
        """Give the ratio that this line must reach."""
        if self.queries == 100 and self.items == 10**6 and self.k <= 100:
            return BATCH_TARGETS.get(self.bits, 1.0)
        if self.queries == 1 and self.items == 10**7 and self.bits == 64:
            return SINGLE_TARGET
        return 1.0

    def is_missed(self) -> bool:
        """Tell whether a target is missed."""
        return self.ratio < self.target() or (self.of_read is not None and self.of_read < READ_TARGET)


class Faiss:
    """IndexBinaryFlat with its levels and ways to select."""

    def __init__(self, codes: BinaryCodes) -> None:
        self.index = faiss.IndexBinaryFlat(codes.n_bits)
        self.index.add(codes.to_bytes())
        available = [level for level in FAISS_LEVELS if self._has(level)]
        self.ways = [(level, use_heap) for level in available for use_heap in (True, False)]

    @staticmethod
    def _has(level: str) -> bool:
        return bool(faiss.SIMDConfig.is_simd_level_available(getattr(faiss, f"SIMDLevel_{level}")))

    def search(self, way: tuple[str, bool], queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Search at one level, in one way."""
        faiss.SIMDConfig.set_level(getattr(faiss, f"SIMDLevel_{way[0]}"))
        self.index.use_heap = way[1]
        return self.index.search(queries, k)


def seconds_of(call: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def best_in_turns(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Time all calls in turns; the best of each."""
    best = {name: seconds_of(call) for name, call in calls.items()}
    longest = max(TURN_SECONDS, TURN_CALLS * max(best.values()))
    for _ in range(max(MIN_TURNS, round(SECONDS / longest))):
        for name, call in calls.items():
            seconds: list[float] = []
            while len(seconds) < TURN_CALLS or sum(seconds) < TURN_SECONDS:
                seconds.append(seconds_of(call))
            best[name] = min(best[name], *seconds)
    return best


def insist_on_agreement(ours: tuple[np.ndarray, np.ndarray], theirs: tuple[np.ndarray, np.ndarray]) -> None:
    """Compare all distances, and the ids that no tie leaves open."""
    distances = ours[0].astype(np.int64)
    if not np.array_equal(distances, theirs[0].astype(np.int64)):
        raise SystemExit("search.py: the distances are not equal.")
    alone = np.ones(distances.shape, dtype=bool)
    alone[:, 1:] &= distances[:, 1:] != distances[:, :-1]
    alone[:, :-1] &= distances[:, :-1] != distances[:, 1:]
    alone[:, -1] = False  # its ties may lie beyond k
    if not np.array_equal(ours[1][alone], np.asarray(theirs[1], dtype=np.int64)[alone]):
        raise SystemExit("search.py: the ids are not equal where no tie leaves a choice.")


def numpy_search(queries: np.ndarray, items: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Search as one would without any package: count bits, partition, sort the rest."""
    all_distances, all_ids = [], []
    for query in queries:
        distances = np.bitwise_count(items ^ query).sum(axis=1, dtype=np.uint16)
        near = np.argpartition(distances, k - 1)[:k]
        near = near[np.argsort(distances[near], kind="stable")]
        all_distances.append(distances[near])
        all_ids.append(near)
    return np.array(all_distances), np.array(all_ids)


def usearch_exact(
    queries: np.ndarray, items: np.ndarray, k: int, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Search exactly with usearch, which takes bits packed into bytes."""
    found = usearch_search(items, queries, k, MetricKind.Hamming, exact=True, threads=threads)
    shape = (len(queries), k)
    return np.asarray(found.distances).reshape(shape), np.asarray(found.keys).reshape(shape)


def read_speed_calls(words: np.ndarray, threads: int, pool: ThreadPoolExecutor) -> Callable[[], object]:
    """Read all the memory with so many threads."""
    parts = np.array_split(words.reshape(-1), threads)
    return lambda: list(pool.map(np.sum, parts)) if threads > 1 else np.sum(parts[0])


def measure(
    database: BinaryCodes, index: Faiss, queries: BinaryCodes, k: int, threads: int, pool: ThreadPoolExecutor
) -> Row:
    """Measure one line."""
    faiss.omp_set_num_threads(threads)
    octets = queries.to_bytes()
    found = nearest_codes(queries, database, k, n_threads=threads)
    first = {}
    for way in index.ways:
        insist_on_agreement((found.distances, found.ids), index.search(way, octets, k))
        first[way] = min(seconds_of(lambda way=way: index.search(way, octets, k)) for _ in range(2))
    likely = sorted(first, key=first.__getitem__)[:3]
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: nearest_codes(queries, database, k, n_threads=threads)
    }
    for way in likely:
        name = f"{way[0]} {'heap' if way[1] else 'counting'}"
        calls[name] = lambda way=way: index.search(way, octets, k)
    if len(queries) == 1:
        calls["read"] = read_speed_calls(database.words, threads, pool)
    best = best_in_turns(calls)
    name = min((name for name in best if name not in ("ours", "read")), key=best.__getitem__)
    row = Row(
        database.n_bits,
        len(database),
        len(queries),
        k,
        threads,
        best["ours"],
        min(best[name], *first.values()),
        name,
    )
    if database.n_bits == 64 and len(database) == 10**7 and "read" in best:
        row.of_read = best["read"] / best["ours"]
    if k == PEER_K and len(database) == PEER_ITEMS:
        row.peers = measure_peers(database, queries, (found.distances, found.ids), threads)
    return row


def measure_peers(
    database: BinaryCodes, queries: BinaryCodes, found: tuple[np.ndarray, np.ndarray], threads: int
) -> dict[str, float]:
    """Time the slow ones, twice each."""
    octets, items = queries.to_bytes(), database.to_bytes()
    calls = {"usearch": lambda: usearch_exact(octets, items, PEER_K, threads)}
    if threads == 1:
        calls["NumPy"] = lambda: numpy_search(queries.words, database.words, PEER_K)
    for call in calls.values():
        distances, ids = call()
        insist_on_agreement(found, (distances, ids))
    return {name: seconds_of(call) for name, call in calls.items()}


def rows_of(arguments: argparse.Namespace) -> Iterator[Row]:
    """Measure line after line."""
    rng = np.random.default_rng(0)
    with ThreadPoolExecutor(max(arguments.threads)) as pool:
        for n_bits in arguments.bits:
            for n_items in arguments.items:
                words = rng.integers(0, 2**64, (n_items, n_bits // 64), dtype=np.uint64)
                database = BinaryCodes(words, n_bits)
                del words
                index = Faiss(database)
                for n_queries in (1, 100):
                    shape = (n_queries, n_bits // 64)
                    queries = BinaryCodes(rng.integers(0, 2**64, shape, dtype=np.uint64), n_bits)
                    for threads in arguments.threads:
                        for k in arguments.k:
                            yield measure(database, index, queries, k, threads, pool)


def line_of(row: Row) -> str:
    """Write one line of the table."""
    peers = "".join(f"  {name} {seconds / row.ours:.0f}x" for name, seconds in row.peers.items())
    of_read = f"  {100 * row.of_read:.0f}% of read" if row.of_read is not None else ""
    missed = "  MISSED" if row.is_missed() else ""
    return (
        f"{row.bits:4} {row.items:9} {row.queries:7} {row.k:5} {row.threads:7} {1e3 * row.ours:10.4f} "
        f"{1e3 * row.faiss:10.4f}  {row.faiss_way:24} {row.ratio:6.2f}{of_read}{peers}{missed}"
    )


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Exact search beside FAISS, usearch and NumPy.")
    parser.add_argument("--bits", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--items", type=int, nargs="+", default=[10**4, 10**6, 10**7])
    parser.add_argument("--k", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--output", type=Path, help="where to write the record (JSON)")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a target is missed")
    arguments = parser.parse_args()
    about = {
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg(),
        "level": kernels.level(),
        "versions": {name: version(name) for name in ("asymhash", "faiss-cpu", "usearch", "numpy")},
    }
    print(", ".join(f"{name} {number}" for name, number in about["versions"].items()))
    print(f"level {about['level']}, {about['cores']} cores, load {about['load'][0]:.1f} at the start")
    print("bits     items queries     k threads    ours ms   FAISS ms  FAISS at its best         ratio")
    rows = []
    for row in rows_of(arguments):
        rows.append(row)
        print(line_of(row), flush=True)
    n_missed = sum(row.is_missed() for row in rows)
    print(f"{len(rows)} rows, {n_missed} miss a target; smallest ratio {min(row.ratio for row in rows):.2f}")
    if arguments.output:
        record = {**about, "rows": [{**asdict(row), "ratio": row.ratio} for row in rows]}
        arguments.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 1 if arguments.check and n_missed else 0


if __name__ == "__main__":
    sys.exit(main())
