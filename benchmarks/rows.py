"""Which solver for a row of W, measured end to end: AP, objective and time of whole Lin:V fits.

    python benchmarks/rows.py                # ASYMHASH_DATA; about ten minutes
    python benchmarks/rows.py --seeds 1

A row is a weighted classification. SGD is the package's own (`learn.classify`); beside it, for the length of this
benchmark alone, least squares (one Cholesky factor for all rows), one Newton step on the weighted logistic loss from
the old row or from least squares, and L-BFGS from least squares. Decision 008 has the table.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import asymhash as ah
from asymhash import kernels
from asymhash.evaluate import paper_protocol
from asymhash.learn.classify import RowClassifier

Floats = NDArray[np.float64]
CASES = (
    ("uniform10", 1000),
    ("phototour_sift", 1000),
    ("phototour_sift", 5000),
    ("cifar10_gist_22k", 1000),
    ("cifar10_gist_22k", 5000),
    ("mnist", 1000),
)
BITS = (8, 16)
# Length of a row from which logistic solvers start, and their ridge: without either they take many steps for nothing.
START_LENGTH, RIDGE = 3.0, 1e-3


class Solver:
    """What the other solvers share: float64 features and the factor of X'X with a small ridge."""

    def __init__(self, classifier: RowClassifier) -> None:
        self.x = classifier._features[:, : classifier._width].astype(np.float64)
        squares = self.x.T @ self.x
        squares[np.diag_indices_from(squares)] += RIDGE * np.trace(squares) / len(squares)
        self._factor = scipy.linalg.cho_factor(squares)

    def least_squares(self, gain: Floats, start: Floats) -> Floats:
        """Fit the gains themselves."""
        return np.asarray(scipy.linalg.cho_solve(self._factor, self.x.T @ gain))

    def newton(self, gain: Floats, start: Floats) -> Floats:
        """Take one Newton step from the old row."""
        row = _of_length(start)
        slope, pull = self._slope(gain, row)
        curvature = (self.x * (np.abs(gain) * pull * (1.0 - pull))[:, None]).T @ self.x
        curvature[np.diag_indices_from(curvature)] += 10 * RIDGE * np.trace(curvature) / len(curvature) + 1e-9
        return np.asarray(row - np.linalg.solve(curvature, slope))

    def newton_from_least_squares(self, gain: Floats, start: Floats) -> Floats:
        """Take one Newton step from least squares."""
        return self.newton(gain, self.least_squares(gain, start))

    def lbfgs(self, gain: Floats, start: Floats, steps: int) -> Floats:
        """Take some steps of L-BFGS from least squares."""
        size = len(self.x)

        def value(row: Floats) -> tuple[float, Floats]:
            margin = np.sign(gain) * (self.x @ row)
            loss = float(np.abs(gain) @ np.logaddexp(0.0, -margin)) / size + 0.5 * RIDGE * float(row @ row)
            return loss, self._slope(gain, row)[0] / size + RIDGE * row

        first = _of_length(self.least_squares(gain, start))
        found = scipy.optimize.minimize(value, first, jac=True, method="L-BFGS-B", options={"maxiter": steps})
        return np.asarray(found.x)

    def _slope(self, gain: Floats, row: Floats) -> tuple[Floats, Floats]:
        pull = 1.0 / (1.0 + np.exp(np.clip(np.sign(gain) * (self.x @ row), -60, 60)))
        return -(self.x.T @ (gain * pull)), pull


SOLVERS: dict[str, Callable[[Solver, Floats, Floats], Floats] | None] = {
    "SGD": None,
    "least squares": Solver.least_squares,
    "Newton, warm": Solver.newton,
    "Newton, l. s.": Solver.newton_from_least_squares,
    "L-BFGS, 5": lambda solver, gain, start: solver.lbfgs(gain, start, 5),
    "L-BFGS, 20": lambda solver, gain, start: solver.lbfgs(gain, start, 20),
}
SGD = RowClassifier.learn


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3, help="seeds 100, 101, ... (3), which no table uses")
    options = parser.parse_args()
    print(
        f"{'data':<18}{'items':>6}{'width':>6}  {'solver':<14}{'AP 8':>7}{'AP 16':>7}{'objective':>11}{'s':>7}"
    )
    for data, n_train in CASES:
        splits = [
            paper_protocol(data, random_state=seed, n_train=n_train)
            for seed in range(100, 100 + options.seeds)
        ]
        for name, solve in SOLVERS.items():
            with threadpool_limits(1), kernels.limit_threads(1):
                rows = [_fit(split, solve, seed) for seed, split in enumerate(splits)]
            short, long, objective, seconds = np.mean(rows, axis=0)
            width = splits[0].database.shape[1]
            print(
                f"{data:<18}{n_train:>6}{width:>6}  {name:<14}{short:>7.3f}{long:>7.3f}{objective:>11.4f}"
                f"{seconds:>7.2f}",
                flush=True,
            )


def _fit(split: Any, solve: Callable[[Solver, Floats, Floats], Floats] | None, seed: int) -> list[float]:
    solvers: dict[int, Solver] = {}

    def learn(self: RowClassifier, gain: Floats, start: Floats, rng: np.random.Generator) -> Floats:
        assert solve is not None
        if id(self) not in solvers:
            solvers[id(self)] = Solver(self)
        return solve(solvers[id(self)], gain / max(float(np.abs(gain).mean()), 1e-300), start)

    RowClassifier.learn = SGD if solve is None else learn  # type: ignore[method-assign]
    try:
        begin = time.perf_counter()
        hasher = ah.LinV(max(BITS), refine=False, random_state=seed).fit(
            split.database, split.train_similarity
        )
        seconds = time.perf_counter() - begin
    finally:
        RowClassifier.learn = SGD  # type: ignore[method-assign]
    found = []
    for n_bits in BITS:
        part = hasher.truncate(n_bits)
        codes = part.encode_queries(split.queries)
        found.append(ah.average_precision(codes, part.database_codes_, split.test_similarity))
    return [*found, hasher.history_[-1].objective, seconds]


def _of_length(row: Floats) -> Floats:
    return row * (START_LENGTH / max(float(np.linalg.norm(row)), 1e-12))


if __name__ == "__main__":
    main()
