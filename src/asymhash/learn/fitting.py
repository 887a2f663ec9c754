"""From a descent to frozen models: what a fit of vectors and a fit of a matrix have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from asymhash import kernels
from asymhash.checks import check_choice, check_integer, check_number
from asymhash.codes import BinaryCodes
from asymhash.errors import invalid_type
from asymhash.estimator import provenance_of
from asymhash.kernels import training
from asymhash.learn.descent import BitRecord, DescentSettings, ProgressCallback, Step, grow
from asymhash.learn.families import Bit, Family
from asymhash.learn.sides import HalfBit
from asymhash.model import Model, Objective
from asymhash.objective import LOSSES
from asymhash.objective.loss import Loss
from asymhash.objective.pairs import pairs_of
from asymhash.objective.threshold import best_threshold
from asymhash.similarity import Similarity

__all__ = ["Finish", "check_settings", "codes_of", "fit_models", "step_of"]


Finish: TypeAlias = Callable[[Step], tuple[Step, float]]
"""Makes a step's bits better, all together; gives them and the unit of the loss that they were learned in."""


def check_settings(
    estimator: Any, *, callback: object, loss_scale: Callable[[int], float] = lambda n_bits: 1.0
) -> DescentSettings:
    """Check the parameters that every method on the paper's objective has, and the callback of its fit."""
    where = type(estimator).__name__
    if callback is not None and not callable(callback):
        raise invalid_type(
            f"{where}.fit", "callback must be callable or None", f"a {type(callback).__name__}"
        )
    loss = check_choice(estimator.loss, where=where, name="loss", choices=tuple(LOSSES))
    starts, sweeps = (
        check_integer(getattr(estimator, name), where=where, name=name, low=0)
        for name in ("n_random_starts", "n_sweeps")
    )
    return DescentSettings(
        beta=check_number(estimator.beta, where=where, name="beta", above=0.0, below=1.0),
        loss=LOSSES[loss],
        loss_scale=loss_scale,
        n_random_starts=starts,
        n_sweeps=sweeps,
    )


def fit_models(
    estimator: BaseEstimator,
    family: Family,
    similarity: Similarity,
    *,
    settings: DescentSettings,
    n_bits: int,
    rng: np.random.Generator,
    callback: ProgressCallback | None,
    encoders: Callable[[Step], dict[str, Any]],
    finish: Finish | None = None,
) -> tuple[list[Model], list[BitRecord]]:
    """Grow the code and freeze a model after each bit; `encoders` gives the parts of `Model` that encode.

    With `finish`, which makes other bits of the last step's, there is one model, of these bits. To be called with one
    BLAS thread: sums on several differ in their last bits, and with them a sign near zero.
    """
    provenance = provenance_of(estimator, similarity)
    models, history = [], []
    for step in grow(family, similarity, settings=settings, n_bits=n_bits, rng=rng):
        scale = settings.loss_scale(step.record.n_bits)
        if finish is not None and step.record.n_bits == n_bits:
            step, scale = finish(step)
        record = step.record
        history.append(record)
        if callback is not None:
            callback(record)
        if finish is not None and record.n_bits < n_bits:
            continue
        parameters = {**provenance["parameters"], "n_bits": record.n_bits}
        models.append(
            Model(
                method=type(estimator).__name__,
                n_bits=record.n_bits,
                database_codes=codes_of([bit.database for bit in step.bits]),
                objective=Objective(estimator.loss, settings.beta, record.threshold, scale),
                provenance={**provenance, "parameters": parameters},
                **encoders(step),
            )
        )
    return models, history


def step_of(bits: Sequence[Bit], similarity: Similarity, *, beta: float, loss: Loss, **facts: Any) -> Step:
    """Step of bits that were learned together: finds theta and the objective; `facts` complete its record."""
    pairs = pairs_of(similarity, len(bits))
    for bit in bits:
        pairs.add(bit.u, bit.v)
    theta, total = best_threshold(*pairs.histograms(), beta=beta, loss=loss)
    n_pairs = similarity.n_queries * similarity.n_items
    record = BitRecord(n_bits=len(bits), objective=total / n_pairs, threshold=theta, **facts)
    return Step(record, tuple(bits))


def codes_of(halves: list[HalfBit]) -> BinaryCodes:
    """Codes of one side's bits."""
    words = np.zeros((len(halves[0].signs), -(-len(halves) // kernels.WORD_BITS)), dtype=np.uint64)
    for position, half in enumerate(halves):
        training.set_bit(words, position, half.signs)
    words.flags.writeable = False
    return BinaryCodes(words, len(halves))
