"""Average precision of every method under the paper's protocol, beside the reference numbers of the project.

    python benchmarks/accuracy.py                     # the paper's methods, LSH and ITQ: 5 minutes on two cores
    python benchmarks/accuracy.py --baselines         # LSH, ITQ, BRE, MLH, KSH beside their authors' code: 40 minutes
    python benchmarks/accuracy.py --claims            # ours refined against everything else: claims.py, an hour
    python benchmarks/accuracy.py --data uniform10 --bits 8 --bits 16 --seeds 1

Two settings are run. "exact-50" takes the radius at which a training point has 50 neighbours on average; its
references are a faithful prototype's (step AP). "released" takes the radius as the authors' code does; its
references are that code's own results (anchored AP), from one seed, whose noise is about .015. The paper's methods are
the paper's: `refine=False`. MLH comes in both of
its authors' recipes, as their numbers are the better of both. KSH, BRE and ITQ see all pixels of MNIST, the others 40
principal components. MNIST comes twice: "mnist" is centred and divided by its length as the protocol says;
"mnist-raw" keeps the pixels as they are, which is what the prototype's numbers turn out to have been measured on (its
LSH row only fits the raw pixels), and the same with all 784 pixels ("mnist-784").

With --check the exit code is 1 where a cell is below its reference by more than the tolerance, or AP falls as the
bits grow.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import claims
import numpy as np

from asymhash.experiments import Split, Trial, run_trials
from asymhash.kernels import usable_cores
from asymhash.methods import METHODS

TOLERANCE = {"exact-50": 0.010, "released": 0.015}
BASELINES = ("lsh", "itq", "bre", "mlh", "ksh")
BASELINE_TOLERANCE = 0.020
RECIPES = ("small", "large")
RULE = {"exact-50": "pooled", "released": "mean_kth"}
KIND = {"exact-50": "step_pairs", "released": "anchored_pairs"}
LSH_SEEDS = 10  # as its authors: one draw of random hyperplanes says little
BITS = (8, 16, 24, 32, 48, 64)


@dataclass(frozen=True)
class Source:
    """A data set as the table names it."""

    name: str
    pca: int | None = None
    prepare: str = "paper"


SOURCES = {
    "uniform10": Source("uniform10"),
    "nursery": Source("nursery"),
    "digits": Source("digits"),
    "mnist": Source("mnist", pca=40),
    "mnist-raw": Source("mnist", pca=40, prepare="none"),
    "mnist-784": Source("mnist", prepare="none"),
}

# setting -> data set -> method -> bits -> AP. Those of "exact-50" are means of 3 seeds (64 bits: one seed), those of
# "released" come from one seed, whose noise is about .015.
REFERENCES: dict[str, dict[str, dict[str, dict[int, float]]]] = {
    "exact-50": {
        "uniform10": {
            "lsh": {8: 0.146, 16: 0.241, 32: 0.369, 64: 0.528},
            "itq": {8: 0.218},
            "symmetric": {8: 0.202, 16: 0.347, 32: 0.484, 64: 0.613},
            "lin-lin": {8: 0.153, 16: 0.311, 32: 0.465, 64: 0.571},
            "lin-v": {8: 0.176, 16: 0.333, 32: 0.492, 64: 0.599},
        },
        "nursery": {
            "lsh": {8: 0.187, 16: 0.342, 32: 0.479, 64: 0.629},
            "itq": {8: 0.360},
            "symmetric": {8: 0.372, 16: 0.517, 32: 0.643, 64: 0.751},
            "lin-lin": {8: 0.303, 16: 0.523, 32: 0.632, 64: 0.708},
            "lin-v": {8: 0.297, 16: 0.491, 32: 0.641, 64: 0.726},
        },
        "digits": {
            "lsh": {8: 0.198, 16: 0.329, 32: 0.549, 64: 0.724},
            "itq": {8: 0.523, 16: 0.686, 32: 0.778, 64: 0.846},
            "symmetric": {8: 0.558, 16: 0.730, 32: 0.839, 64: 0.899},
            "lin-lin": {8: 0.555, 16: 0.723, 32: 0.837, 64: 0.898},
            "lin-v": {8: 0.566, 16: 0.737, 32: 0.827, 64: 0.848},
        },
        "mnist-raw": {
            "lsh": {8: 0.103, 16: 0.192, 32: 0.284, 64: 0.382},
            "itq": {8: 0.324, 16: 0.433, 32: 0.529, 64: 0.599},
            "symmetric": {8: 0.430, 16: 0.622, 32: 0.757, 64: 0.837},
            "lin-lin": {8: 0.508, 16: 0.663, 32: 0.772, 64: 0.843},
            "lin-v": {8: 0.535, 16: 0.679, 32: 0.777, 64: 0.812},
        },
        "mnist-784": {
            "symmetric": {8: 0.422, 16: 0.584, 32: 0.691, 64: 0.732},
            "lin-lin": {8: 0.487, 16: 0.631, 32: 0.716, 64: 0.747},
            "lin-v": {8: 0.489, 16: 0.637, 32: 0.712, 64: 0.689},
        },
    },
    "released": {
        "uniform10": {
            "lsh": {8: 0.217, 16: 0.290, 24: 0.357, 32: 0.408, 48: 0.487, 64: 0.532},
            "itq": {8: 0.296},
            "bre": {8: 0.266, 16: 0.392, 24: 0.466, 32: 0.511, 48: 0.577, 64: 0.608},
            "mlh": {8: 0.318, 16: 0.447, 24: 0.476, 32: 0.547, 48: 0.596, 64: 0.635},
            "ksh": {8: 0.305, 16: 0.412, 24: 0.481, 32: 0.526, 48: 0.590, 64: 0.636},
            "lin-lin": {8: 0.274, 16: 0.427, 24: 0.478, 32: 0.527, 48: 0.592, 64: 0.604},
            "lin-v": {8: 0.273, 16: 0.434, 24: 0.498, 32: 0.562, 48: 0.635, 64: 0.672},
        },
        "nursery": {
            "lsh": {8: 0.295, 16: 0.411, 24: 0.507, 32: 0.581, 48: 0.669, 64: 0.724},
            "itq": {8: 0.543},
            "bre": {8: 0.429, 16: 0.582, 24: 0.700, 32: 0.744, 48: 0.814, 64: 0.841},
            "mlh": {8: 0.491, 16: 0.681, 24: 0.687, 32: 0.733, 48: 0.822, 64: 0.854},
            "ksh": {8: 0.457, 16: 0.584, 24: 0.640, 32: 0.675, 48: 0.719, 64: 0.751},
            "lin-lin": {8: 0.459, 16: 0.599, 24: 0.740, 32: 0.767, 48: 0.851, 64: 0.871},
            "lin-v": {8: 0.454, 16: 0.571, 24: 0.699, 32: 0.753, 48: 0.817, 64: 0.861},
        },
        "mnist": {
            "lsh": {8: 0.205, 16: 0.319, 24: 0.416, 32: 0.490, 48: 0.600, 64: 0.661},
            "itq": {8: 0.473, 16: 0.631, 24: 0.705, 32: 0.743, 48: 0.801, 64: 0.832},
            "bre": {8: 0.423, 16: 0.535, 24: 0.631, 32: 0.671, 48: 0.728, 64: 0.774},
            "mlh": {8: 0.479, 16: 0.645, 24: 0.695, 32: 0.762, 48: 0.787, 64: 0.830},
            "ksh": {8: 0.529, 16: 0.624, 24: 0.695, 32: 0.720, 48: 0.746, 64: 0.761},
            "lin-lin": {8: 0.529, 16: 0.681, 24: 0.739, 32: 0.776, 48: 0.828, 64: 0.853},
            "lin-v": {8: 0.547, 16: 0.679, 24: 0.738, 32: 0.766, 48: 0.801, 64: 0.818},
        },
    },
}

Row = dict[str, object]


def main() -> int:
    """Run, print, store, check."""
    options = _options()
    if options.claims:
        return claims.main(options)
    rows: list[Row] = []
    failures: list[str] = []
    settings = ["released"] if options.baselines else list(RULE)
    for setting in options.setting or settings:
        for data in options.data or list(SOURCES):
            if data not in SOURCES or (setting == "released" and data not in REFERENCES["released"]):
                continue
            found = _measure(setting, data, options)
            rows += found
            _print_table(setting, data, found, options.seeds)
            failures += _failures(found)
    if options.output is not None:
        made = {name: version(name) for name in ("asymhash", "numpy", "scikit-learn")}
        record = {"seeds": options.seeds, "versions": made, "machine": platform.machine(), "rows": rows}
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(record, indent=1) + "\n")
    print(
        "\n".join(["", *failures])
        if failures
        else "\nEvery cell reaches its reference; AP grows with the bits."
    )
    return 1 if failures and options.check else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", action="append", choices=list({**SOURCES, **claims.DATA}), help="repeatable; all"
    )
    parser.add_argument("--setting", action="append", choices=list(RULE), help="repeatable; both")
    parser.add_argument(
        "--method", action="append", choices=list(METHODS), help="repeatable; the paper's, LSH, ITQ"
    )
    parser.add_argument("--baselines", action="store_true", help="all baselines, beside their authors' code")
    parser.add_argument("--claims", action="store_true", help="two hash functions against everything else")
    parser.add_argument("--bits", action="append", type=int, help="repeatable; 8 16 24 32 48 64")
    parser.add_argument("--seeds", type=int, default=3, help="seeds 0, 1, ... (3)")
    parser.add_argument("--first-seed", type=int, default=0, help="begin with another seed (0)")
    parser.add_argument("--jobs", type=int, default=usable_cores(), help="processes at once")
    parser.add_argument("--output", type=Path, help="write the records to this JSON file")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a cell falls short")
    return parser.parse_args()


def _methods(options: argparse.Namespace) -> list[str]:
    if options.baselines:
        return list(BASELINES)
    return options.method or [
        name for name, row in METHODS.items() if row.takes_queries or name in ("lsh", "itq")
    ]


def _parameters(method: str) -> list[tuple[tuple[str, object], ...]]:
    """Return the settings in which a method is measured."""
    if method == "mlh":
        return [(("recipe", recipe),) for recipe in RECIPES]
    return [(("refine", False),)] if METHODS[method].takes_queries else [()]


def _measure(setting: str, data: str, options: argparse.Namespace) -> list[Row]:
    source = SOURCES[data]
    bits = tuple(options.bits or BITS)
    trials = [
        Trial(
            Split(source.name, seed=options.first_seed + seed, rule=RULE[setting], prepare=source.prepare),
            method,
            bits,
            # The released numbers of ITQ are on all pixels; it has principal components of its own.
            pca=None if method == "itq" else source.pca,
            parameters=parameters,
        )
        for method in _methods(options)
        for parameters in _parameters(method)
        for seed in range(max(options.seeds, LSH_SEEDS) if method == "lsh" else options.seeds)
    ]
    outcomes = run_trials(trials, jobs=options.jobs)
    rows: list[Row] = []
    for method, parameters in dict.fromkeys((trial.method, trial.parameters) for trial in trials):
        records = [
            record
            for outcome in outcomes
            if (outcome.trial.method, outcome.trial.parameters) == (method, parameters)
            for record in outcome.records
        ]
        for length in bits:
            cell = [record for record in records if record.n_bits == length]
            if any(record.n_bits_used != length for record in cell):
                continue  # ITQ has at most as many bits as features
            precision = {
                kind: [record.average_precisions[kind] for record in cell]
                for kind in cell[0].average_precisions
            }
            rows.append(
                {
                    "setting": setting,
                    "data": data,
                    "method": method,
                    "recipe": dict(parameters).get("recipe", ""),
                    "bits": length,
                    "mean": {kind: round(float(np.mean(values)), 4) for kind, values in precision.items()},
                    "spread": {kind: round(float(np.std(values)), 4) for kind, values in precision.items()},
                    "seconds": round(float(np.mean([record.seconds for record in cell])), 2),
                    "reference": REFERENCES[setting].get(data, {}).get(method, {}).get(length),
                }
            )
    return rows


def _print_table(setting: str, data: str, rows: list[Row], seeds: int) -> None:
    kinds = ("step_pairs", "anchored_pairs", "expected_pairs", "step_queries")
    counted = f"{seeds} seeds (LSH: at least {LSH_SEEDS})"
    print(f"\n{data}, {setting}: mean AP of {counted} +- standard deviation; reference: {KIND[setting]}")
    print(
        f"{'method':<10} bits  "
        + "  ".join(f"{kind:>15}" for kind in kinds)
        + "  reference  difference  seconds"
    )
    for row in rows:
        mean, spread, reference = row["mean"], row["spread"], row["reference"]
        assert isinstance(mean, dict) and isinstance(spread, dict)
        cells = "  ".join(f"{mean[kind]:>8.3f} +-{spread[kind]:.3f}" for kind in kinds)
        tail = f"{'':>11}{'':>12}"
        if isinstance(reference, float):
            tail = f"{reference:>11.3f}{mean[KIND[setting]] - reference:>+12.3f}"
        name = f"{row['method']} {row['recipe']}".rstrip()
        print(f"{name:<10} {row['bits']!s:>4}  {cells}{tail} {row['seconds']:>8.2f}", flush=True)


def _failures(rows: list[Row]) -> list[str]:
    """Cells below their reference (of our methods at 16 bits and more), and lengths at which AP falls."""
    messages = []
    last: dict[object, tuple[object, float]] = {}
    for row in rows:
        setting, mean, bits = str(row["setting"]), row["mean"], row["bits"]
        assert isinstance(mean, dict) and isinstance(bits, int)
        method, recipe = str(row["method"]), str(row["recipe"])
        is_baseline = method in BASELINES and setting == "released"
        name = f"{row['data']}, {setting}, {method} {recipe}".rstrip() + f", {bits} bits"
        reference, tolerance = row["reference"], BASELINE_TOLERANCE if is_baseline else TOLERANCE[setting]
        reached = mean[KIND[setting]]
        twins = [other["mean"] for other in rows if (other["method"], other["bits"]) == (method, bits)]
        best = max(twin[KIND[setting]] for twin in twins if isinstance(twin, dict))  # of both recipes
        counts = isinstance(reference, float) and (bits >= 16 or is_baseline)
        if counts and best < reference - tolerance and reached == best:
            messages.append(f"below: {name}: {reached:.3f}, reference {reference:.3f}")
        shorter = last.get((method, recipe))
        if shorter is not None and mean["step_pairs"] < shorter[1]:
            messages.append(f"falls: {name}: {mean['step_pairs']:.3f}, {shorter[0]} bits {shorter[1]:.3f}")
        last[method, recipe] = (bits, mean["step_pairs"])
    return messages


if __name__ == "__main__":
    sys.exit(main())
