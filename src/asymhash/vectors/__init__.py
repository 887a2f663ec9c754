"""Reading vectors, labels and matrices from files, memory-mapped where the format allows it."""

from asymhash.vectors.blocks import iter_blocks
from asymhash.vectors.files import read_labels, read_matrix, read_vectors

__all__ = ["iter_blocks", "read_labels", "read_matrix", "read_vectors"]
