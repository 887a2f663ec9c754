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
    needs : str
        What it learns from besides the vectors, in a word or two.
    cost : str
        What its time grows with.
    learns_similarity : bool
        Whether `fit` uses a similarity; without it the vectors alone decide.
    nests : bool
        Whether a long fit with the default parameters holds the shorter ones (`truncate`).
    takes_queries : bool
        Whether the estimator can learn from training queries that are not the database, and tells of every bit.
    takes_pca : bool
        Whether the estimator can keep some principal components first; ITQ finds its own.
    at_most_n_features : bool
        Whether the code cannot have more bits than the vectors have features.
    quick : tuple of (name, value)
        Parameters with which it is quick enough for a demo; none where it always is.
    """

    name: str
    title: str
    module: str
    class_name: str
    summary: str
    needs: str
    cost: str
    learns_similarity: bool
    nests: bool
    takes_queries: bool = False
    takes_pca: bool = True
    at_most_n_features: bool = False
    quick: tuple[tuple[str, Any], ...] = ()

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
        needs="similarity",
        cost="bits^2 x queries x items",
        learns_similarity=True,
        nests=False,
        takes_queries=True,
    ),
    Method(
        name="lin-lin",
        title="Lin:Lin",
        module="asymhash.learn.lin_lin",
        class_name="LinLin",
        summary="two linear maps, one for each side",
        needs="similarity",
        cost="as lin-v",
        learns_similarity=True,
        nests=False,
        takes_queries=True,
    ),
    Method(
        name="symmetric",
        title="symmetric",
        module="asymhash.learn.symmetric",
        class_name="SymmetricLinear",
        summary="one linear map for both sides, the same objective",
        needs="similarity",
        cost="as lin-v",
        learns_similarity=True,
        nests=False,
        takes_queries=True,
    ),
    Method(
        name="mlh",
        title="MLH",
        module="asymhash.baselines.mlh",
        class_name="MLH",
        summary="one linear map, hinge loss of pairs; baseline",
        needs="similarity",
        cost="bits x features",
        learns_similarity=True,
        nests=False,
        quick=(("recipe", "small"), ("n_epochs", 8), ("n_validation_epochs", 2)),
    ),
    Method(
        name="ksh",
        title="KSH",
        module="asymhash.baselines.ksh",
        class_name="KSH",
        summary="kernels to 300 anchors, not linear; baseline",
        needs="similarity",
        cost="bits x items x anchors",
        learns_similarity=True,
        nests=False,
        takes_pca=False,
    ),
    Method(
        name="bre",
        title="BRE",
        module="asymhash.baselines.bre",
        class_name="BRE",
        summary="one linear map, distances rebuilt; baseline",
        needs="distances",
        cost="bits x items x sweeps",
        learns_similarity=False,
        nests=False,
        takes_pca=False,
    ),
    Method(
        name="itq",
        title="ITQ",
        module="asymhash.baselines.itq",
        class_name="ITQ",
        summary="rotated principal components, as many as bits; baseline",
        needs="vectors",
        cost="bits^2 x items",
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
        needs="vectors",
        cost="bits x items",
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
