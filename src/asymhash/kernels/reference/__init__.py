"""The kernels once more in plain NumPy: slow, obviously right, and without checks of their arguments.

Tests compare the compiled kernels with these at every instruction level.
"""

from asymhash.kernels.reference.encode import encode_signs
from asymhash.kernels.reference.search import (
    distance_counts,
    hamming_distances,
    items_within,
    nearest_items,
)
from asymhash.kernels.reference.tiles import (
    append_runs,
    row_squares,
    select_between,
)
from asymhash.kernels.reference.training import (
    code_gradients,
    descend_in_order,
    logistic_descent,
    lookup_product,
    orders_of,
    pair_histogram,
    positives_histogram,
    positives_product,
)

__all__ = [
    "append_runs",
    "code_gradients",
    "descend_in_order",
    "distance_counts",
    "encode_signs",
    "hamming_distances",
    "items_within",
    "logistic_descent",
    "lookup_product",
    "nearest_items",
    "orders_of",
    "pair_histogram",
    "positives_histogram",
    "positives_product",
    "row_squares",
    "select_between",
]
