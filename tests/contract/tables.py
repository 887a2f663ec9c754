"""The table of methods and what each promises: a new method is one new row, and every contract test holds for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import asymhash as ah

NEEDS_SETTING = (
    "scikit-learn runs it only where the environment sets SCIPY_ARRAY_API, and codes are NumPy arrays"
)


@dataclass(frozen=True)
class Row:
    """One method: how to make it small, and what it promises.

    learns: it minimises the objective over a similarity y, from any training queries.
    supervised: it uses a similarity y; the other baselines ignore it.
    nests: a longer fit holds every shorter one.
    free: database codes are free, so `encode_database` takes similarities.
    not_run: scikit-learn's checks that cannot run, each with the reason.
    """

    method: type
    learns: bool = True
    supervised: bool = True
    nests: bool = True
    free: bool = False
    one_map: bool = False
    linear: bool = True
    at_most_n_features: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)
    not_run: Mapping[str, str] = field(default_factory=lambda: {"check_array_api_input": NEEDS_SETTING})

    @property
    def name(self) -> str:
        return self.method.__name__

    def make(self, n_bits: Any = 3, **parameters: Any) -> Any:
        return self.method(n_bits, **{"random_state": 0, **self.parameters, **parameters})


FAST = {"n_epochs": 2}
PAPER = {**FAST, "refine": False}
FAST_MLH = {"recipe": "small", "n_epochs": 1, "n_validation_epochs": 1, "n_batches": 3}
ROWS = [
    Row(ah.LinV, free=True, nests=False, parameters=FAST),
    Row(ah.LinLin, nests=False, parameters=FAST),
    Row(ah.SymmetricLinear, nests=False, one_map=True, parameters=FAST),
    Row(ah.LinV, free=True, parameters=PAPER),
    Row(ah.LinLin, parameters=PAPER),
    Row(ah.SymmetricLinear, one_map=True, parameters=PAPER),
    Row(ah.LSH, learns=False, supervised=False, one_map=True),
    Row(ah.ITQ, learns=False, supervised=False, nests=False, one_map=True, at_most_n_features=True),
    Row(ah.BRE, learns=False, supervised=False, nests=False, one_map=True, parameters={"n_sweeps": 5}),
    Row(ah.MLH, learns=False, nests=False, one_map=True, parameters=FAST_MLH),
    Row(ah.KSH, learns=False, nests=False, one_map=True, linear=False),
]
LEARNERS = [row for row in ROWS if row.learns]
SUPERVISED = [row for row in ROWS if row.supervised]
NESTING = [row for row in ROWS if row.nests]
N_FEATURES = 5


def name_of(value: Any) -> str | None:
    return value.name if isinstance(value, Row) else None


def vectors(n_items: int = 40, n_features: int = N_FEATURES, seed: int = 0) -> np.ndarray:
    """Vectors whose numbers are the same in float16, float32 and float64."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n_items, n_features)).astype(np.float16).astype(np.float64)


def classes(n_items: int = 40) -> np.ndarray:
    return np.arange(n_items) % 4
