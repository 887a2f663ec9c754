"""Rotations of principal components that lie near the corners of a cube, as ITQ finds them (Gong and Lazebnik)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_rotation"]


def best_rotation(
    components: NDArray[np.float64], n_iterations: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Rotation R (k, k) of components V (n, k) that minimises |sign(V R) - V R| by alternation; each step is an SVD."""
    n_bits = components.shape[1]
    rotation: NDArray[np.float64] = np.linalg.qr(rng.standard_normal((n_bits, n_bits)))[0]
    for _ in range(n_iterations):
        signs = np.where(components @ rotation >= 0, 1.0, -1.0)
        left, _, right = np.linalg.svd(components.T @ signs)
        rotation = left @ right
    return rotation
