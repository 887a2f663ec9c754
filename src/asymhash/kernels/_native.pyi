from typing import Any

import numpy as np
from numpy.typing import NDArray

sanitized: bool
encode_chain: int
encode_group: int

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
def select_between(
    values: NDArray[Any],
    low: NDArray[Any],
    high: NDArray[Any],
    below: NDArray[np.int64],
    inside: NDArray[np.int64],
    columns: NDArray[np.int32],
    found: NDArray[Any],
) -> int: ...
def append_runs(
    items: NDArray[np.int32], counts: NDArray[np.int64], cursors: NDArray[np.int64], out: NDArray[np.int32]
) -> None: ...
def encode_signs(
    vectors: NDArray[Any],
    weights: NDArray[np.float32],
    threshold: NDArray[np.float32],
    slope: NDArray[np.float32],
    floor: NDArray[np.float32],
    exact_weights: NDArray[np.float64],
    exact_offset: NDArray[np.float64],
    exact_slope: float,
    words: NDArray[np.uint64],
    n_threads: int,
) -> NDArray[np.int64]: ...
def row_squares(vectors: NDArray[Any], out: NDArray[Any]) -> None: ...
def levels() -> list[str]: ...
def level() -> str: ...
def force_level(name: str) -> None: ...
def set_bit(words: NDArray[np.uint64], bit: int, signs: NDArray[np.int8]) -> None: ...
def drop_bit(words: NDArray[np.uint64], bit: int, last: int) -> None: ...
def lookup_product(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    n_bits: int,
    table: NDArray[np.int16],
    x: NDArray[np.int16],
    out: NDArray[np.int64],
    n_threads: int,
) -> None: ...
def masked_product(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    mask: NDArray[np.uint8],
    n_bits: int,
    dissimilar: NDArray[np.int16],
    similar: NDArray[np.int16],
    x: NDArray[np.int16],
    out: NDArray[np.int64],
    n_threads: int,
) -> None: ...
def mask_pairs(indptr: NDArray[np.int64], indices: NDArray[np.int32], mask: NDArray[np.uint8]) -> None: ...
def pair_histogram(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    n_bits: int,
    counts: NDArray[np.int64],
    n_threads: int,
) -> None: ...
def positives_product(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    n_bits: int,
    table: NDArray[np.int64],
    x: NDArray[np.int16],
    out: NDArray[np.int64],
    n_threads: int,
) -> None: ...
def positives_product_real(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    n_bits: int,
    table: NDArray[np.float64],
    x: NDArray[np.float64],
    out: NDArray[np.float64],
    n_threads: int,
) -> None: ...
def positives_histogram(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    n_bits: int,
    counts: NDArray[np.int64],
    n_threads: int,
) -> None: ...
def walsh_product(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    n_bits: int,
    spectrum: NDArray[np.float64],
    x: NDArray[np.float64],
    out: NDArray[np.float64],
    n_threads: int,
) -> None: ...
def walsh_correlation(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    n_bits: int,
    weights: NDArray[np.int64],
    n_threads: int,
) -> None: ...
def code_gradients(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    n_bits: int,
    dissimilar: NDArray[np.float32],
    similar: NDArray[np.float32],
    out: NDArray[np.float32],
    n_threads: int,
) -> None: ...
def logistic_descent(
    features: NDArray[np.float32],
    gain: NDArray[np.float32],
    w: NDArray[np.float32],
    n_epochs: int,
    first_step: float,
    last_step: float,
    seed: int,
) -> None: ...
