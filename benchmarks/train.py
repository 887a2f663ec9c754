"""Training with the compiled kernels: how much faster, how it grows, where the time goes.

    python benchmarks/train.py protocol      # against the NumPy path, 1000 items; a minute
    python benchmarks/train.py gist          # 20,019 x 512 GIST vectors, 64 bits (ASYMHASH_DATA); minutes
    python benchmarks/train.py million       # 1,000,000 x 128, 10,000 training queries, 16 and 32 bits; many minutes
    python benchmarks/train.py refinement    # what refining all bits costs beside the descent, 1000 items; a minute
    python benchmarks/train.py scaling       # time against items and bits, drawn to docs/images; many minutes

"protocol" and "scaling" measure the paper's descent (`refine=False`), "gist" and "million" both. Each fit runs in a
process of its own, which tells its time, its peak memory and where the time went. Results go to
benchmarks/records/train-NAME.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import asymhash as ah
from asymhash import kernels
from asymhash.evaluate import paper_protocol
from asymhash.kernels import training

RECORDS = Path(__file__).parent / "records"
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "training-time.png"
PARTS = {
    "products": (
        "lookup_product",
        "masked_product",
        "walsh_product",
        "positives_product",
        "positives_product_real",
    ),
    "gradients": ("code_gradients",),
    "histograms": ("pair_histogram", "walsh_histogram", "positives_histogram"),
    "rows by SGD": ("logistic_descent",),
    "bits": ("set_bit", "drop_bit"),
}

Record = dict[str, Any]


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = {
        "protocol": protocol,
        "gist": gist,
        "million": million,
        "refinement": refinement,
        "scaling": scaling,
    }
    parser.add_argument("part", choices=list(parts))
    chosen = parser.parse_args().part
    record = parts[chosen]()
    RECORDS.mkdir(exist_ok=True)
    (RECORDS / f"train-{chosen}.json").write_text(json.dumps(record, indent=1) + "\n")


@contextlib.contextmanager
def _timed_kernels(seconds: dict[str, float]) -> Iterator[None]:
    """Add up the time inside each kind of kernel."""
    originals = {name: getattr(training, name) for names in PARTS.values() for name in names}

    def timed(part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            begin = time.perf_counter()
            try:
                return call(*arguments, **named)
            finally:
                seconds[part] += time.perf_counter() - begin

        return run

    for part, names in PARTS.items():
        for name in names:
            setattr(training, name, timed(part, originals[name]))
    try:
        yield
    finally:
        for name, call in originals.items():
            setattr(training, name, call)


def _in_process(
    make: Callable[..., tuple[NDArray[Any], NDArray[Any] | None, Any]],
    n_bits: int,
    *,
    refine: bool = False,
    **given: Any,
) -> Record:
    """Make data and fit Lin:V in a fresh process, so that peak memory is that of this fit."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_fit, (make, n_bits, refine, given))


def _fit(make: Callable[..., Any], n_bits: int, refine: bool, given: dict[str, Any]) -> Record:
    database, queries, average = make(**given)
    begin = time.perf_counter()
    similarity = ah.similarity.neighbors(
        *((database,) if queries is None else (queries, database)), average=average
    )
    searched = time.perf_counter()
    inside: dict[str, float] = defaultdict(float)
    with _timed_kernels(inside):
        hasher = ah.LinV(n_bits, refine=refine, random_state=0).fit(database, similarity, queries=queries)
    fitted = time.perf_counter()
    inside["all else"] = fitted - searched - sum(inside.values())
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert peak is not None
    return {
        "n_items": len(database),
        "n_queries": similarity.n_queries,
        "n_features": database.shape[1],
        "n_bits": n_bits,
        "refine": refine,
        "n_positives": similarity.n_positives,
        "neighbours_seconds": round(searched - begin, 2),
        "fit_seconds": round(fitted - searched, 3),
        "parts_seconds": {name: round(value, 3) for name, value in inside.items()},
        "peak_mib": int(peak[1]) // 1024,
        "objective": hasher.history_[-1].objective,
    }


def _print(record: Record) -> None:
    total = record["neighbours_seconds"] + record["fit_seconds"]
    print(
        f"{record['n_items']:>9,} items x {record['n_features']}, {record['n_queries']:,} queries, "
        f"{record['n_bits']} bits{', refined' if record['refine'] else ''}: {total:.1f} s "
        f"(neighbours {record['neighbours_seconds']:.1f} s, "
        f"fit {record['fit_seconds']:.1f} s), peak {record['peak_mib']:,} MiB"
    )
    shares = {name: value / record["fit_seconds"] for name, value in record["parts_seconds"].items()}
    print(
        "          of the fit: " + ", ".join(f"{name} {share:.0%}" for name, share in shares.items()),
        flush=True,
    )


def protocol() -> Record:
    """Compare with the NumPy path of the same algorithm under the paper's protocol: time and accuracy at 32 bits."""
    seconds: dict[str, list[float]] = {"kernels": [], "reference": []}
    precision: dict[str, list[float]] = {"kernels": [], "reference": []}
    with kernels.limit_threads(1):
        for seed in range(3):
            split = paper_protocol("uniform10", random_state=seed)
            for path in ("kernels", "reference"):
                level = kernels.REFERENCE if path == "reference" else kernels.levels()[-1]
                with kernels.force_level(level):
                    begin = time.perf_counter()
                    hasher = ah.LinV(32, refine=False, random_state=seed).fit(
                        split.database, split.train_similarity
                    )
                    seconds[path].append(time.perf_counter() - begin)
                found = ah.average_precision(
                    hasher.encode_queries(split.queries), hasher.database_codes_, split.test_similarity
                )
                precision[path].append(found)
    best = {path: min(values) for path, values in seconds.items()}
    mean = {path: float(np.mean(values)) for path, values in precision.items()}
    spread = {path: float(np.std(values)) for path, values in precision.items()}
    print("10-D Uniform, 1000 items, Lin:V, 32 bits, 1 thread, best of 3 seeds interleaved")
    for path in seconds:
        print(f"  {path:<10} {best[path]:7.3f} s, step AP {mean[path]:.3f} +- {spread[path]:.3f}")
    print(f"  ratio {best['reference'] / best['kernels']:.1f}x")
    return {"seconds": seconds, "average_precision": precision}


def _gist_vectors() -> tuple[NDArray[Any], None, int]:
    data = ah.datasets.load("cifar10_gist_22k")
    return data.vectors[:20_019], None, 50


def gist() -> Record:
    """20,019 x 512, 64 bits; and both paths on a part of it that NumPy can do."""
    fits = [_in_process(_gist_vectors, 64, refine=refine) for refine in (False, True)]
    for record in fits:
        _print(record)
    data = ah.datasets.load("cifar10_gist_22k").vectors.astype(np.float32)
    order = np.random.default_rng(0).permutation(len(data))
    database, queries = data[order[:2500]], data[order[2500:5000]]
    similarity = ah.similarity.neighbors(database, average=50)
    truth = ah.similarity.neighbors(queries, database, radius=similarity.radius)
    found: dict[str, list[float]] = {}
    for path in ("kernels", "reference"):
        with kernels.force_level(kernels.REFERENCE if path == "reference" else kernels.levels()[-1]):
            found[path] = [
                ah.average_precision(hasher.encode_queries(queries), hasher.database_codes_, truth)
                for hasher in (
                    ah.LinV(16, refine=False, random_state=seed).fit(database, similarity)
                    for seed in range(8)
                )
            ]
        mean, error = np.mean(found[path]), np.std(found[path]) / np.sqrt(len(found[path]))
        print(f"  2500 of them, 16 bits, {path}: step AP {mean:.4f} +- {error:.4f} (8 seeds)")
    return {"fits": fits, "part_average_precision": found}


def _mixture(
    n_items: int, n_queries: int, n_features: int, average: int
) -> tuple[NDArray[Any], NDArray[Any] | None, int]:
    """Points around 1000 centres, as embeddings are: clusters of all sizes in a space that is not full."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((1000, n_features), dtype=np.float32)
    owners = rng.integers(0, 1000, n_items)
    vectors = rng.standard_normal((n_items, n_features), dtype=np.float32)
    vectors *= 0.7
    for first in range(0, n_items, 65_536):
        vectors[first : first + 65_536] += centres[owners[first : first + 65_536]]
    if n_queries >= n_items:
        return vectors, None, average
    return vectors, vectors[rng.choice(n_items, n_queries, replace=False)], average


def million() -> Record:
    """Fit a million items, neighbour search included."""
    records = []
    size = {"n_items": 1_000_000, "n_queries": 10_000, "n_features": 128, "average": 500}
    for n_bits in (16, 32):
        for refine in (False, True):
            record = _in_process(_mixture, n_bits, refine=refine, **size)
            _print(record)
            records.append(record)
    return {"fits": records}


def refinement() -> Record:
    """Compare fits with and without refinement of all bits under the paper's protocol, by bits: time and accuracy."""
    rows = []
    for source in ("uniform10", "digits"):
        for n_bits in (8, 16, 32, 64, 128):
            seconds: dict[bool, list[float]] = {False: [], True: []}
            precision: dict[bool, list[float]] = {False: [], True: []}
            for seed in range(3):
                split = paper_protocol(source, random_state=seed)
                for refine in (False, True):
                    begin = time.perf_counter()
                    hasher = ah.LinV(n_bits, refine=refine, random_state=seed).fit(
                        split.database, split.train_similarity
                    )
                    seconds[refine].append(time.perf_counter() - begin)
                    found = hasher.encode_queries(split.queries), hasher.database_codes_
                    precision[refine].append(ah.average_precision(*found, split.test_similarity))
            best = {refine: min(values) for refine, values in seconds.items()}
            mean = {refine: float(np.mean(values)) for refine, values in precision.items()}
            print(
                f"{source}, {n_bits:>3} bits: descent {best[False]:.3f} s, AP {mean[False]:.3f}; refined "
                f"{best[True]:.3f} s, {best[True] / best[False]:.1f} times as long, AP {mean[True]:.3f}"
            )
            rows.append({"data": source, "n_bits": n_bits, "seconds": best, "average_precision": mean})
    return {"fits": rows}


def scaling() -> Record:
    """Time against items at 16 and 32 bits, and against bits at 10,000 items; slopes of log time are fitted."""
    items = {
        n_bits: [
            _in_process(_mixture, n_bits, n_items=n, n_queries=min(n, 10_000), n_features=32, average=50)
            for n in (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
        ]
        for n_bits in (16, 32)
    }
    bits = [
        _in_process(_mixture, n_bits, n_items=10_000, n_queries=10_000, n_features=32, average=50)
        for n_bits in (8, 16, 24, 32, 48, 64, 96, 128)
    ]
    for record in [*items[16], *items[32], *bits]:
        _print(record)
    _draw(items, bits)
    return {"items": {str(key): value for key, value in items.items()}, "bits": bits}


def _slope(sizes: list[int], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _draw(items: dict[int, list[Record]], bits: list[Record]) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for (n_bits, records), marker in zip(items.items(), ("o", "s"), strict=True):
        sizes = [record["n_items"] for record in records]
        seconds = [record["fit_seconds"] for record in records]
        # Up to 10,000 items all of them are training queries; beyond, the number of queries stays.
        upto, beyond = _slope(sizes[:3], seconds[:3]), _slope(sizes[2:], seconds[2:])
        label = f"{n_bits} bits: slope {upto:.2f}, from 10,000 on {beyond:.2f}"
        left.loglog(sizes, seconds, marker=marker, label=label)
        print(label)
    left.set(xlabel="items (training queries: at most 10,000)", ylabel="seconds to fit Lin:V")
    sizes = [record["n_bits"] for record in bits]
    seconds = [record["fit_seconds"] for record in bits]
    label = f"10,000 items: slope {_slope(sizes, seconds):.2f}"
    print(label)
    right.loglog(sizes, seconds, marker="o", label=label)
    right.set(xlabel="bits", ylabel="seconds to fit Lin:V", xticks=sizes, xticklabels=sizes)
    right.minorticks_off()
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
