"""The kernel that encodes; the door of `asymhash.kernels` opens here too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asymhash.errors import invalid, invalid_type
from asymhash.kernels import _native
from asymhash.kernels.arguments import check_threads

__all__ = ["ENCODED_DTYPES", "SignMap", "encode_signs"]

# What the kernel reads as it is; other vectors are to be converted to float64 first.
ENCODED_DTYPES = tuple(np.dtype(name) for name in ("float16", "float32", "float64", "uint8", "int8"))

_CHAIN, _GROUP = _native.encode_chain, _native.encode_group


@dataclass(frozen=True, eq=False)
class SignMap:
    """A linear map as `encode_signs` takes it: in float32 with bounds of its errors, and in float64.

    In float32 each row is scaled by a power of two. With u half the distance from 1 to the next float32, a sum in
    which no term passes through more than k roundings errs by at most k u / (1 - k u) |x| |w|, rounding x and w to
    float32 by u |x| |w| each, and rounding the offset by u |offset|. The kernel adds chains of 64 terms, and then
    the chains: k is 64 and their number, a tenth of the number of features where these are many, and so are the
    signs left open. The hundredth on top leaves room for the bounds' own arithmetic, and keeps what is certain here
    farther from zero than float64 errs.
    """

    weights: NDArray[np.float32]  # (groups of 16 bits, n_features, 16)
    threshold: NDArray[np.float32]  # (16 groups) each
    slope: NDArray[np.float32]
    floor: NDArray[np.float32]
    exact_weights: NDArray[np.float64]  # (n_bits, n_features)
    exact_offset: NDArray[np.float64]
    exact_slope: float

    @classmethod
    def of(cls, weights: NDArray[np.float64], offset: NDArray[np.float64]) -> SignMap:
        """Prepare a map of shape (n_bits, n_features) and its offset, both C-contiguous.

        Examples
        --------
        >>> SignMap.of(np.ones((2, 3)), np.zeros(2)).weights.shape
        (1, 3, 16)
        """
        n_bits, d = weights.shape
        exponents = np.frexp(np.abs(weights).max(axis=1))[1]
        scaled = np.ldexp(weights, -exponents[:, None])
        n_groups = -(-n_bits // _GROUP)
        with np.errstate(over="ignore"):
            threshold = -np.ldexp(offset, -exponents)
            lengths = np.sqrt(np.einsum("td,td->t", scaled, scaled))
            u = 2.0**-24
            depth = min(d, _CHAIN) + -(-d // _CHAIN)
            growth = 1.01 / (1.0 - min(0.5, (depth + 8) * u))
            lost = 2.0**-149  # what underflow takes from one term
            slope = growth * (depth + 5) * u * lengths + math.sqrt(d) * lost
            # Squares of numbers below 2^-75 vanish from the norm: sqrt(d) 2^-74 bounds what it may lack.
            floor = growth * u * np.abs(threshold) + math.sqrt(d) * (slope * 2.0**-74 + lengths * lost)
            floor += (d + 1) * lost
            groups = np.zeros((n_groups * _GROUP, d), dtype=np.float32)
            groups[:n_bits] = scaled
            bounds = np.zeros((3, n_groups * _GROUP), dtype=np.float32)
            bounds[:, :n_bits] = threshold, slope, floor
            bounds[1:] = np.nextafter(bounds[1:], np.float32(np.inf))
        return cls(
            _on_cache_lines(groups.reshape(n_groups, _GROUP, d).transpose(0, 2, 1)),
            bounds[0],
            bounds[1],
            bounds[2],
            weights,
            offset,
            # The sum and the definition each err by at most (d + 2) eps / 2 of the sizes of the terms: twice both.
            2 * (d + 4) * float(np.finfo(np.float64).eps),
        )


def _on_cache_lines(array: NDArray[np.float32]) -> NDArray[np.float32]:
    """Copy to an address that is a multiple of 64: registers of 16 weights that lie across two lines load slower."""
    room = np.empty(array.size + _GROUP, dtype=np.float32)
    first = -(room.ctypes.data // room.itemsize) % _GROUP
    copy = room[first : first + array.size].reshape(array.shape)
    copy[...] = array
    return copy


def encode_signs(
    vectors: NDArray[Any], sign_map: SignMap, words: NDArray[np.uint64], *, n_threads: int | None = None
) -> NDArray[np.int64]:
    """Write the codes of vectors by a linear map, and name the signs that float64 sums in any order leave open.

    Parameters
    ----------
    vectors : array of shape (n_items, n_features) of a dtype of `ENCODED_DTYPES`
    sign_map : SignMap
    words : C-contiguous uint64 array of shape (n_items, ceil(n_bits / 64))
        Bit t of an item becomes bit t % 64 of its word t // 64: whether its projection is at least zero.
    n_threads : int, optional
        Default: `n_threads()`. The result is the same for any number.

    Returns
    -------
    open : int64 array
        The signs left open, as `i * n_bits + t`, increasing; these bits may be wrong.

    Examples
    --------
    >>> words = np.empty((2, 1), np.uint64)
    >>> sign_map = SignMap.of(np.array([[1.0, -1.0], [3.0, 1.0]]), np.zeros(2))
    >>> encode_signs(np.array([[5.0, 5.0], [-1.0, -2.0]]), sign_map, words)
    array([0])
    >>> words[1]
    array([1], dtype=uint64)
    """
    where, n_features = "encode_signs", sign_map.weights.shape[1]
    if vectors.dtype not in ENCODED_DTYPES:
        names = ", ".join(dtype.name for dtype in ENCODED_DTYPES)
        raise invalid_type(where, f"vectors must be of a dtype of {names}", f"dtype {vectors.dtype}")
    if vectors.ndim != 2 or vectors.shape[1] != n_features:
        raise invalid(where, f"vectors must be of shape (n, {n_features})", f"shape {vectors.shape}")
    shape = len(vectors), -(-len(sign_map.exact_offset) // 64)
    if words.dtype != np.uint64 or words.shape != shape or not words.flags.c_contiguous:
        expected = f"words must be a C-contiguous uint64 array of shape {shape}"
        raise invalid(where, expected, f"{words.dtype} of shape {words.shape}")
    # Aligned, too: an array may lie on any byte of a file.
    vectors = np.require(vectors, requirements=["C", "A"])
    open_ = _native.encode_signs(
        vectors.view(np.uint16) if vectors.dtype == np.float16 else vectors,
        sign_map.weights,
        sign_map.threshold,
        sign_map.slope,
        sign_map.floor,
        sign_map.exact_weights,
        sign_map.exact_offset,
        sign_map.exact_slope,
        words,
        check_threads(n_threads, where=where),
    )
    return open_.view(
        np.int64
    )  # as the compiler's other integer of 64 bits, it would be printed with its dtype
