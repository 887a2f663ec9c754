"""How good are the codes: metrics (pure functions of codes and similarity) and the paper's protocol."""

from asymhash.evaluate.metrics import (
    DistanceHistograms,
    PrecisionRecall,
    average_precision,
    average_precisions,
    distance_histograms,
    precision_recall,
    recall_at,
    recall_at_k,
)
from asymhash.evaluate.protocol import PaperProtocol, paper_protocol

__all__ = [
    "DistanceHistograms",
    "PaperProtocol",
    "PrecisionRecall",
    "average_precision",
    "average_precisions",
    "distance_histograms",
    "paper_protocol",
    "precision_recall",
    "recall_at",
    "recall_at_k",
]
