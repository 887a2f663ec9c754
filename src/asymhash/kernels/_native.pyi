import numpy as np
from numpy.typing import NDArray

sanitized: bool

def hamming_distances(
    queries: NDArray[np.uint64], items: NDArray[np.uint64], out: NDArray[np.uint16]
) -> None: ...
def distance_counts(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    allowed: NDArray[np.uint64] | None,
    n_threads: int,
    out: NDArray[np.int64],
) -> None: ...
def nearest_items(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    allowed: NDArray[np.uint64] | None,
    n_threads: int,
    distances: NDArray[np.uint16],
    ids: NDArray[np.int64],
) -> None: ...
def items_within(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    allowed: NDArray[np.uint64] | None,
    n_threads: int,
    radius: int,
) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.int64]]: ...
def levels() -> list[str]: ...
def level() -> str: ...
def force_level(name: str) -> None: ...
