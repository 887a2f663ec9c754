"""The table of methods: what each is called on the command line and what it needs.

A new method is one more row here; the command line, the demo and the evaluation find it by itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from asymhash.errors import invalid

__all__ = ["METHODS", "Method", "find_method"]


@dataclass(frozen=True)
class Method:
    """One row of the table of methods.

    Parameters
    ----------
    name : str
        The name on the command line.
    title : str
        The name in tables and pictures.
    module, class_name : str
        Where the estimator is. It is imported when it is first used, so that ``asymhash --help`` stays quick.
    summary : str
        One sentence for people who choose.
    learns_similarity : bool
        Whether `fit` uses a similarity; without it the vectors alone decide.
    nests : bool
        Whether a long fit passes through the shorter ones (`truncate`).
    takes_pca : bool
        Whether the estimator can keep some principal components first; ITQ finds its own.
    at_most_n_features : bool
        Whether the code cannot have more bits than the vectors have features.
    """

    name: str
    title: str
    module: str
    class_name: str
    summary: str
    learns_similarity: bool
    nests: bool
    takes_pca: bool = True
    at_most_n_features: bool = False

    def longest(self, n_bits: int, n_features: int) -> int:
        """Cap a code length to what the method can give.

        Parameters
        ----------
        n_bits : int
            The length that is wished for.
        n_features : int
            The features of the vectors, after any PCA that the method takes.

        Returns
        -------
        int
            The length that the method can give.

        Examples
        --------
        >>> find_method("itq").longest(16, n_features=10)
        10
        """
        return min(n_bits, n_features) if self.at_most_n_features else n_bits

    def create(self, n_bits: int, *, random_state: int | None, **parameters: Any) -> Any:
        """Make the estimator, not fitted yet.

        Parameters
        ----------
        n_bits : int
            The length of the codes.
        random_state : int or None
            The seed.
        **parameters
            Further parameters of the estimator; those that are None keep its default.

        Returns
        -------
        estimator
            As `LinV` and its siblings.

        Examples
        --------
        >>> find_method("lsh").create(8, random_state=0)
        LSH(n_bits=8, random_state=0)
        """
        estimator_class = getattr(importlib.import_module(self.module), self.class_name)
        given = {name: value for name, value in parameters.items() if value is not None}
        unknown = given.keys() - estimator_class().get_params().keys()
        if unknown:
            raise invalid(
                f"method {self.name}",
                f"parameters must be among {', '.join(sorted(estimator_class().get_params()))}",
                ", ".join(sorted(unknown)),
            )
        return estimator_class(n_bits=n_bits, random_state=random_state, **given)


_ROWS = (
    Method(
        name="lin-v",
        title="Lin:V",
        module="asymhash.learn.lin_v",
        class_name="LinV",
        summary="linear map for queries, free codes for the database",
        learns_similarity=True,
        nests=True,
    ),
    Method(
        name="lin-lin",
        title="Lin:Lin",
        module="asymhash.learn.lin_lin",
        class_name="LinLin",
        summary="two linear maps, one for each side",
        learns_similarity=True,
        nests=True,
    ),
    Method(
        name="symmetric",
        title="symmetric",
        module="asymhash.learn.symmetric",
        class_name="SymmetricLinear",
        summary="one linear map for both sides, the same objective",
        learns_similarity=True,
        nests=True,
    ),
    Method(
        name="itq",
        title="ITQ",
        module="asymhash.baselines.itq",
        class_name="ITQ",
        summary="rotated principal components; baseline",
        learns_similarity=False,
        nests=False,
        takes_pca=False,
        at_most_n_features=True,
    ),
    Method(
        name="lsh",
        title="LSH",
        module="asymhash.baselines.lsh",
        class_name="LSH",
        summary="random directions; baseline",
        learns_similarity=False,
        nests=True,
    ),
)

METHODS: Mapping[str, Method] = MappingProxyType({method.name: method for method in _ROWS})
"""The methods by their name on the command line, the paper's own first."""


def find_method(name: str) -> Method:
    """Look a method up by its name on the command line.

    Parameters
    ----------
    name : str
        For example ``"lin-v"``.

    Returns
    -------
    Method
        Its row of the table.

    Examples
    --------
    >>> find_method("lin-v").class_name
    'LinV'
    """
    if name not in METHODS:
        raise invalid("find_method", f"the name must be one of {', '.join(METHODS)}", repr(name))
    return METHODS[name]
