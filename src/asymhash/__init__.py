"""Asymmetric binary hashing: one hash function for queries, another for the database.

The names below are loaded when they are first used, so that importing asymhash costs almost nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asymhash import datasets, errors, similarity, theory
    from asymhash.baselines.bre import BRE
    from asymhash.baselines.itq import ITQ
    from asymhash.baselines.ksh import KSH
    from asymhash.baselines.lsh import LSH
    from asymhash.baselines.mlh import MLH
    from asymhash.codes import BinaryCodes
    from asymhash.evaluate.metrics import average_precision, precision_recall, recall_at
    from asymhash.learn.lin_lin import LinLin
    from asymhash.learn.lin_v import LinV
    from asymhash.learn.matrix_codes import MatrixCodes
    from asymhash.learn.symmetric import SymmetricLinear
    from asymhash.model import Model, load
    from asymhash.search import NearbyCodes, NearestCodes, codes_within, count_distances, nearest_codes
    from asymhash.similarity import Similarity

__all__ = [
    "BRE",
    "ITQ",
    "KSH",
    "LSH",
    "MLH",
    "BinaryCodes",
    "LinLin",
    "LinV",
    "MatrixCodes",
    "Model",
    "NearbyCodes",
    "NearestCodes",
    "Similarity",
    "SymmetricLinear",
    "average_precision",
    "codes_within",
    "count_distances",
    "datasets",
    "errors",
    "load",
    "nearest_codes",
    "precision_recall",
    "recall_at",
    "similarity",
    "theory",
]

_MODULE_OF = {
    "BRE": "asymhash.baselines.bre",
    "ITQ": "asymhash.baselines.itq",
    "KSH": "asymhash.baselines.ksh",
    "LSH": "asymhash.baselines.lsh",
    "MLH": "asymhash.baselines.mlh",
    "BinaryCodes": "asymhash.codes",
    "LinLin": "asymhash.learn.lin_lin",
    "LinV": "asymhash.learn.lin_v",
    "MatrixCodes": "asymhash.learn.matrix_codes",
    "Model": "asymhash.model",
    "NearbyCodes": "asymhash.search",
    "NearestCodes": "asymhash.search",
    "Similarity": "asymhash.similarity",
    "SymmetricLinear": "asymhash.learn.symmetric",
    "average_precision": "asymhash.evaluate.metrics",
    "codes_within": "asymhash.search",
    "count_distances": "asymhash.search",
    "load": "asymhash.model",
    "nearest_codes": "asymhash.search",
    "precision_recall": "asymhash.evaluate.metrics",
    "recall_at": "asymhash.evaluate.metrics",
}
_SUBMODULES = frozenset({"datasets", "errors", "similarity", "theory"})


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    elif name in _SUBMODULES:
        value = importlib.import_module(f"asymhash.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("asymhash")
    else:
        raise AttributeError(f"module 'asymhash' has no attribute {name!r}")
    globals()[name] = value  # the next use finds it without coming here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
