"""Encoding in plain NumPy, with the product of all vectors at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asymhash.kernels.encode import SignMap

__all__ = ["encode_signs"]


def encode_signs(vectors: NDArray[Any], sign_map: SignMap, words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Write the codes of vectors by a linear map, and name the signs that float64 sums in any order leave open.

    Parameters
    ----------
    vectors : array of shape (n_items, n_features)
    sign_map : SignMap
    words : uint64 array of shape (n_items, ceil(n_bits / 64))

    Returns
    -------
    open : int64 array

    Examples
    --------
    >>> words = np.empty((1, 1), np.uint64)
    >>> sign_map = SignMap.of(np.array([[1.0, -1.0], [3.0, 1.0]]), np.zeros(2))
    >>> encode_signs(np.array([[5.0, 5.0]]), sign_map, words), words
    (array([0]), array([[3]], dtype=uint64))
    """
    n_bits, d = sign_map.exact_weights.shape
    weights = sign_map.weights.transpose(0, 2, 1).reshape(-1, d)[:n_bits]
    threshold, slope, floor = (
        bound[:n_bits] for bound in (sign_map.threshold, sign_map.slope, sign_map.floor)
    )
    with np.errstate(all="ignore"):
        singles, doubles = vectors.astype(np.float32), vectors.astype(np.float64)
        norms = np.sqrt((singles * singles).sum(axis=1))
        distance = singles @ weights.T - threshold
        is_sure = (np.abs(distance) > norms[:, None] * slope + floor) & np.isfinite(distance)
        values = doubles @ sign_map.exact_weights.T + sign_map.exact_offset
        sizes = np.abs(doubles) @ np.abs(sign_map.exact_weights).T + np.abs(sign_map.exact_offset)
        is_settled = (np.abs(values) > sign_map.exact_slope * sizes + 1e-300) & np.isfinite(values)
    bools = np.zeros((len(vectors), words.shape[1] * 64), dtype=bool)
    bools[:, :n_bits] = np.where(is_sure, distance >= 0, values >= 0)
    words[...] = np.packbits(bools, axis=1, bitorder="little").view("<u8")
    return np.flatnonzero(~(is_sure | is_settled))
