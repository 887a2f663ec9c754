"""One search that a newcomer can read: the digits nearest to a held-out one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from asymhash import datasets
from asymhash.kernels import hamming_distances

if TYPE_CHECKING:
    from asymhash.experiments import KeptCodes

__all__ = ["Found", "describe", "find_nearest_digits"]


@dataclass(frozen=True, eq=False)
class Found:
    """A query digit and the digits nearest to it by their codes.

    Attributes
    ----------
    n_bits, n_database : int
        The length of the codes, and how many were searched.
    query_image : array of shape (8, 8)
        The query.
    query_label, query_id : int
        Which digit it is, and which item of the data set.
    images : array of shape (k, 8, 8)
        What was found, nearest first.
    distances, labels, ids : int arrays of shape (k,)
        How many bits differ, which digits they are, which items of the data set.
    """

    n_bits: int
    n_database: int
    query_image: NDArray[Any]
    query_label: int
    query_id: int
    images: NDArray[Any]
    distances: NDArray[np.int64]
    labels: NDArray[np.int64]
    ids: NDArray[np.int64]


def find_nearest_digits(codes: KeptCodes, *, query: int = 0, k: int = 10) -> Found:
    """Search the codes of the digits for one query; ties go to the smaller item.

    Parameters
    ----------
    codes : KeptCodes
        Codes of a trial on the data set "digits".
    query : int, default 0
        Which of the queries.
    k : int, default 10
        How many to find.

    Returns
    -------
    Found
        The images and distances.
    """
    digits = datasets.load("digits")
    assert digits.labels is not None
    distances = hamming_distances(codes.queries[query].words, codes.database.words)[0].astype(np.int64)
    order = np.lexsort((codes.database_ids, distances))[:k]
    ids = codes.database_ids[order]
    query_id = int(codes.query_ids[query])
    images = np.asarray(digits.vectors).reshape(-1, 8, 8)
    return Found(
        n_bits=codes.database.n_bits,
        n_database=len(codes.database),
        query_image=images[query_id],
        query_label=int(digits.labels[query_id]),
        query_id=query_id,
        images=images[ids],
        distances=distances[order],
        labels=digits.labels[ids].astype(np.int64),
        ids=ids,
    )


def describe(found: Found) -> list[str]:
    """Write the search in words: a line about the query, and one for every digit found."""
    n_bytes = -(-found.n_bits // 8)
    lines = [
        f"The query is a held-out {found.query_label} (item {found.query_id}). Its {found.n_bits}-bit code "
        f"is compared with {found.n_database} codes of {n_bytes} bytes each:"
    ]
    for place, (distance, label, item) in enumerate(
        zip(found.distances, found.labels, found.ids, strict=True), start=1
    ):
        meaning = "the same digit" if label == found.query_label else f"not a {found.query_label}"
        lines.append(
            f"{place:4}. {distance:2} of {found.n_bits} bits differ: a {label} (item {item}), {meaning}"
        )
    return lines
