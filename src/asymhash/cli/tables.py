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

__all__ = ["COLUMNS", "MEASURES", "Summary", "cells", "record_as_json", "summarise", "summary_as_json"]

MEASURES = {
    "step AP": "step_pairs",
    "anchored AP": "anchored_pairs",
    "expected AP": "expected_pairs",
    "AP by query": "step_queries",
}
"""Column titles and the names of `evaluate.average_precisions`."""

COLUMNS = ("method", "bits", *MEASURES, "seconds")


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
    capped = f" ({summary.n_bits_used} used)" if summary.n_bits_used != summary.n_bits else ""
    row = [find_method(summary.method).title, f"{summary.n_bits}{capped}"]
    for name in MEASURES.values():
        spread = f" ± {summary.spreads[name]:.3f}" if summary.n_seeds > 1 else ""
        row.append(f"{summary.means[name]:.3f}{spread}")
    return [*row, f"{summary.seconds:.1f}"]


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
