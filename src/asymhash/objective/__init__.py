"""The paper's objective: loss, threshold, pair tables, and codes fitted to it when they are free.

The letters of the paper, used throughout this package and :mod:`asymhash.learn`:

====== ==================================================================================
letter meaning
====== ==================================================================================
U, V   codes of the training queries (m x k) and of the database items (n x k), entries +-1
S      similarity, +1 or -1 for every pair (query, item); stored as its sparse positives
theta  threshold on the inner product: Y = U V' - theta
beta   weight of the similar pairs, 1 - beta that of the dissimilar ones
M      what one bit can gain: with every other bit fixed the loss is C - u' M v
====== ==================================================================================
"""

from asymhash.objective.free_codes import fit_free_codes
from asymhash.objective.loss import LOSSES, Loss, centred, gain_tables, pair_loss, scaled
from asymhash.objective.pairs import Gains, PackedPairs, Pairs, pairs_of
from asymhash.objective.threshold import best_threshold

__all__ = [
    "LOSSES",
    "Gains",
    "Loss",
    "PackedPairs",
    "Pairs",
    "best_threshold",
    "centred",
    "fit_free_codes",
    "gain_tables",
    "pair_loss",
    "pairs_of",
    "scaled",
]
