"""One row of a linear map: weighted classification, approximated by logistic regression (Section 5 of the paper)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from asymhash import kernels
from asymhash.kernels import reference, training

__all__ = ["RowClassifier", "signs_of"]

# Step of SGD on features of unit root mean square length, falling geometrically. Chosen on splits of Uniform,
# Nursery, digits and MNIST that no table uses (seeds 100..102): 2 -> 0.1 stops short of the optimum in 40 and more
# dimensions (AP lower by .02 to .06 at 16 bits), 8 -> 0.2 by .01, 50 -> 1 gains nothing.
_STEPS = 40.0, 0.2


def signs_of(projection: NDArray[np.floating]) -> NDArray[np.int8]:
    """Threshold a projection at zero; zero itself counts as +1, here and wherever vectors are encoded."""
    signs: NDArray[np.int8] = (projection >= 0).view(np.int8) * np.int8(2) - np.int8(1)
    return signs


class RowClassifier:
    """Learns rows w that aim at maximising sum_i gain_i sign(<w, x_i>), on features (n_items, d) that stay the same."""

    def __init__(self, features: NDArray[np.float64], n_epochs: int) -> None:
        self.n_epochs = n_epochs
        self._width = features.shape[1]
        padded = -(-self._width // training.FEATURE_STEP) * training.FEATURE_STEP
        # Single precision: the direction is judged afterwards, in double precision and on the true objective.
        self._features = np.zeros((len(features), padded), dtype=np.float32)
        self._features[:, : self._width] = features

    def learn(
        self, gain: NDArray[np.float64], start: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Row for these gains, from `start`, by SGD on the weighted logistic loss.

        Targets are sign(gain), weights |gain| scaled to mean one. The start is scaled to unit length first:
        sign(<w, x>) does not see the length of w, but the logistic loss saturates when it has grown over earlier
        updates.
        """
        scale = float(np.abs(gain).sum()) / len(gain)
        length = math.sqrt(float(start @ start))
        row = start / length if length > 0 else start.copy()
        if scale == 0.0:
            return row
        first = np.zeros(self._features.shape[1], dtype=np.float32)
        first[: self._width] = row
        # One loop in C++, or the same loop in Python where the reference is forced.
        descend = (
            reference.logistic_descent if kernels.level() == kernels.REFERENCE else training.logistic_descent
        )
        learned = descend(
            self._features,
            (gain / scale).astype(np.float32),
            first,
            n_epochs=self.n_epochs,
            steps=_STEPS,
            seed=int(rng.integers(2**63)),
        )
        return learned[: self._width].astype(np.float64)
