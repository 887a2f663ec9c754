"""Data sets of the paper and stand-ins: made by code, from scikit-learn, or from checked files."""

from asymhash.datasets.loading import Dataset, load, names
from asymhash.datasets.made import nursery, uniform

__all__ = ["Dataset", "load", "names", "nursery", "uniform"]
