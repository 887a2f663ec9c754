"""Records of trials as rows of tables and as JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from asymhash.methods import find_method

if TYPE_CHECKING:
    from asymhash.experiments import Record

__all__ = [
    "CAPPED",
    "COLUMNS",
    "MEASURES",
    "Summary",
    "cells",
    "record_as_json",
    "star",
    "summarise",
    "summary_as_json",
]

MEASURES = {
    "step": "step_pairs",
    "anchored": "anchored_pairs",
    "expected": "expected_pairs",
    "by query": "step_queries",
}
"""Column titles and the names of `evaluate.average_precisions`."""

COLUMNS = ("method", "bits", *MEASURES, "seconds")

CAPPED = "* in fewer bits: this method cannot have more than the vectors have features"
"""What the star in a table means."""


@dataclass(frozen=True)
class Summary:
    """Mean and spread over seeds of one method at one length.

    Attributes
    ----------
    source, method : str
        What was tried.
    n_bits, n_bits_used : int
        The length asked for, and the one the method gave.
    n_seeds : int
        How many seeds.
    means, spreads : dict of str to float
        By the names of `evaluate.average_precisions`; the spread is the standard deviation, 0 for one seed.
    seconds : float
        The mean time.
    """

    source: str
    method: str
    n_bits: int
    n_bits_used: int
    n_seeds: int
    means: dict[str, float]
    spreads: dict[str, float]
    seconds: float


def summarise(records: Sequence[Record]) -> list[Summary]:
    """Put the records of all seeds together, in the order in which they come first."""
    groups: dict[tuple[str, str, int], list[Record]] = {}
    for record in records:
        groups.setdefault((record.source, record.method, record.n_bits), []).append(record)
    return [_summary(group) for group in groups.values()]


def _summary(group: Sequence[Record]) -> Summary:
    names = group[0].average_precisions
    values = {name: [record.average_precisions[name] for record in group] for name in names}
    return Summary(
        source=group[0].source,
        method=group[0].method,
        n_bits=group[0].n_bits,
        n_bits_used=group[0].n_bits_used,
        n_seeds=len(group),
        means={name: fmean(column) for name, column in values.items()},
        spreads={name: stdev(column) if len(column) > 1 else 0.0 for name, column in values.items()},
        seconds=fmean(record.seconds for record in group),
    )


def cells(summary: Summary) -> list[str]:
    """Write one row of the table."""
    row = [find_method(summary.method).title, f"{summary.n_bits}{star(summary)}"]
    for name in MEASURES.values():
        # without the 0 before the point, so that four measures and their spreads fit into 80 columns
        spread = f" ± {summary.spreads[name]:.3f}".replace("0.", ".") if summary.n_seeds > 1 else ""
        row.append(f"{summary.means[name]:.3f}{spread}")
    return [*row, f"{summary.seconds:.1f}"]


def star(summary: Summary) -> str:
    """Mark a length that the method could not give."""
    return "*" if summary.n_bits_used != summary.n_bits else " "


def record_as_json(record: Record) -> dict[str, Any]:
    """Write a record for machines."""
    return dict(_plain(dataclasses.asdict(record)))


def summary_as_json(summary: Summary) -> dict[str, Any]:
    """Write a summary for machines."""
    return dict(_plain(dataclasses.asdict(summary)))


def _plain(value: Any) -> Any:
    """Replace what JSON cannot hold: a metric without any positive is NaN."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
