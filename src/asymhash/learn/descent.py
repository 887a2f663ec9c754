"""The descent over bits (Section 5 of the paper), written once for every family of bits.

A code of k bits starts from the k - 1 bits that came before. The new bit starts at random, a few times, and at the
rank-one projection of M; each start is improved, and the one with the lowest loss is kept, where gains are counted
beyond what the threshold alone could gain (`objective.centred`). The threshold follows; then
one sweep improves every bit with the others fixed, and the threshold follows again. Nothing depends on how long the
code will become, so a fit of 32 bits passes through exactly the fit of 16 bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from asymhash.learn.families import Bit, Climb, Family
from asymhash.objective.loss import Loss, centred, gain_tables, scaled
from asymhash.objective.pairs import Gains, pairs_of
from asymhash.objective.threshold import best_threshold
from asymhash.similarity import Similarity

__all__ = ["BitRecord", "DescentSettings", "ProgressCallback", "Step", "grow"]


@dataclass(frozen=True)
class DescentSettings:
    """How to descend: the loss of a pair, the weight of similar pairs, starts of a new bit, sweeps after it.

    `loss_scale` tells the unit of the loss for every length of the code.
    """

    beta: float
    loss: Loss
    loss_scale: Callable[[int], float]
    n_random_starts: int
    n_sweeps: int


@dataclass(frozen=True)
class BitRecord:
    """What learning one more bit did, for histories and progress bars.

    Attributes
    ----------
    n_bits, total_bits : int
        Bits learned so far, and wanted.
    objective : float
        Mean loss over all pairs, in the unit (`loss_scale`) of this length; after a refinement in the unit that it
        chose, `model_.objective.scale`.
    threshold : float
        theta.
    seconds : float
        Time of this bit alone; of the last bit with the refinement of all.
    start : str
        Which start of the new bit was kept, "random" or "rank_one"; after a refinement, of all bits: "greedy" (this
        descent's result), "rotation" or "symmetric", with "refined" before it where that gained.
    """

    n_bits: int
    total_bits: int
    objective: float
    threshold: float
    seconds: float
    start: str


@dataclass(frozen=True, eq=False)
class Step:
    """All bits after one more was learned."""

    record: BitRecord
    bits: tuple[Bit, ...]


def grow(
    family: Family,
    similarity: Similarity,
    *,
    settings: DescentSettings,
    n_bits: int,
    rng: np.random.Generator,
) -> Iterator[Step]:
    """Learn one bit after the other; yields after each."""
    beta = settings.beta
    pairs = pairs_of(similarity, n_bits)
    n_pairs = similarity.n_queries * similarity.n_items
    bits: list[Bit] = []
    theta, counts = 0.0, pairs.histograms()
    for length in range(1, n_bits + 1):
        began = time.perf_counter()
        loss = scaled(settings.loss, settings.loss_scale(length))
        tables = gain_tables(length - 1, theta, beta, loss)
        start, bit = _best_start(family, pairs.gains(centred(tables, *counts)), settings.n_random_starts, rng)
        bits.append(bit)
        pairs.add(bit.u, bit.v)
        counts = pairs.histograms()
        theta, total = best_threshold(*counts, beta=beta, loss=loss)
        for _ in range(settings.n_sweeps if length > 1 else 0):
            tables = gain_tables(length - 1, theta, beta, loss)
            for position, bit in enumerate(bits):
                pairs.remove(position)
                bits[position] = family.improve(bit, pairs.gains(tables), rng).bit
                pairs.add(bits[position].u, bits[position].v, at=position)
            counts = pairs.histograms()
            theta, total = best_threshold(*counts, beta=beta, loss=loss)
        seconds = time.perf_counter() - began
        yield Step(BitRecord(length, n_bits, total / n_pairs, theta, seconds, start), tuple(bits))


def _best_start(
    family: Family, gains: Gains, n_random_starts: int, rng: np.random.Generator
) -> tuple[str, Bit]:
    """Improve every start before comparing: at the start itself the rank-one projection nearly always wins."""
    best: tuple[str, Climb] | None = None
    for name in ("rank_one", *("random",) * n_random_starts):
        begun = family.rank_one(gains, rng) if name == "rank_one" else family.random(rng)
        reached = family.improve(begun, gains, rng)
        if best is None or reached.score > best[1].score:
            best = name, reached
    assert best is not None
    return best[0], best[1].bit


ProgressCallback = Callable[[BitRecord], object]
