"""What turns vectors into codes, whichever it is, and how it lies in a model file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from asymhash.errors import invalid
from asymhash.kernel_map import KernelMap
from asymhash.linear_map import LinearMap

__all__ = ["Encoder", "arrays_of", "take_encoder"]

Encoder: TypeAlias = LinearMap | KernelMap


def arrays_of(encoder: Encoder) -> Mapping[str, NDArray[np.float64]]:
    """Sections of a model file that hold an encoder, without its name."""
    arrays = {"weights": encoder.weights, "offset": encoder.offset}
    if isinstance(encoder, KernelMap):
        arrays |= {"anchors": encoder.anchors, "width": np.array([encoder.width])}
    return arrays


def take_encoder(name: str, arrays: dict[str, NDArray[Any]], n_bits: int) -> Encoder | None:
    """Make the encoder of that name and take its sections away; an error names the section that does not fit."""
    parts = {
        part: arrays.pop(f"{name}.{part}")
        for part in ("weights", "offset", "anchors", "width")
        if f"{name}.{part}" in arrays
    }
    if not parts:
        return None
    is_kernel = "anchors" in parts or "width" in parts
    wanted: dict[str, tuple[int, ...]] = {}
    if is_kernel:
        n_anchors = _length(parts, "anchors", 0)
        wanted["anchors"] = (n_anchors, _length(parts, "anchors", 1))
        wanted["width"] = (1,)
        wanted["weights"] = (n_bits, n_anchors)
    else:
        wanted["weights"] = (n_bits, _length(parts, "weights", 1))
    wanted["offset"] = (n_bits,)
    for part, shape in wanted.items():
        _check(f"section {name}.{part}", parts.get(part), shape)
    if not is_kernel:
        return LinearMap(parts["weights"], parts["offset"])
    width = float(parts["width"][0])
    if width <= 0:
        raise invalid(f"section {name}.width", "there must be a number above 0", repr(width))
    return KernelMap(parts["anchors"], width, parts["weights"], parts["offset"])


def _length(parts: dict[str, NDArray[Any]], part: str, axis: int) -> int:
    """Length of an axis, 1 where there is none: then the shape is what is wrong."""
    array = parts.get(part)
    return max(1, int(array.shape[axis])) if array is not None and array.ndim == 2 else 1


def _check(where: str, array: NDArray[Any] | None, shape: tuple[int, ...]) -> None:
    expected = f"there must be finite float64 numbers of shape {shape}"
    if array is None:
        raise invalid(where, expected, "none")
    if array.shape != shape or array.dtype != np.float64:
        raise invalid(where, expected, f"{array.dtype} of shape {array.shape}")
    if not np.isfinite(array).all():
        raise invalid(where, expected, "NaN or inf")
