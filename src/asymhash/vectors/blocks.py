"""Walking over the rows of an array that may be larger than the memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

__all__ = ["iter_blocks"]


def iter_blocks(array: NDArray[Any], block_size: int) -> Iterator[NDArray[Any]]:
    """Yield an array's rows in blocks when the work on all of them at once would not fit in memory.

    Parameters
    ----------
    array : ndarray of shape (n, ...)
        Any array; a memory map is read block by block.
    block_size : int
        The rows of a block; the last block may be shorter.

    Yields
    ------
    ndarray of shape (block_size, ...)
        Views, in order.

    Examples
    --------
    >>> import numpy as np
    >>> [block.tolist() for block in iter_blocks(np.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    for begin in range(0, array.shape[0], block_size):
        yield array[begin : begin + block_size]
