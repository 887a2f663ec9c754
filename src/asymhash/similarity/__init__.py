"""What "similar" means: from distances, labels, tags or a matrix to one `Similarity`."""

from asymhash.similarity.labels import labels, shared_labels
from asymhash.similarity.matrix import from_matrix
from asymhash.similarity.nearest import nearest
from asymhash.similarity.neighbors import neighbors
from asymhash.similarity.similarity import Similarity

__all__ = ["Similarity", "from_matrix", "labels", "nearest", "neighbors", "shared_labels"]
