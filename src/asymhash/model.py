"""The frozen result of learning: what encodes each side, the database codes, and how all of it came about."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asymhash.artifact import load_artifact, save_artifact
from asymhash.checks import check_choice, check_integer, check_number, check_vectors
from asymhash.codes import MAX_BITS, BinaryCodes
from asymhash.encoders import Encoder, arrays_of, take_encoder
from asymhash.errors import (
    AsymhashError,
    DamagedFile,
    InvalidArgument,
    InvalidType,
    UnsupportedOperation,
    invalid,
    invalid_type,
)
from asymhash.kernel_map import KernelMap
from asymhash.metadata import frozen_metadata
from asymhash.objective import LOSSES, fit_free_codes, scaled
from asymhash.similarity import Similarity

__all__ = ["Model", "Objective", "load"]

_KIND = "model"
_FREE_BLOCK_PAIRS = 1 << 24  # (training query, new item) pairs whose distances are held at a time: 16 MiB


@dataclass(frozen=True)
class Objective:
    """What was minimised, and the threshold it ended with: enough to give codes to items that arrive later."""

    loss: str
    beta: float
    theta: float
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Model:
    """What a method leaves behind; the only thing that is saved, shipped and distributed.

    Parameters
    ----------
    method : str
        Class name of the method.
    n_bits : int
    query_map : LinearMap, KernelMap or None
        Encodes queries; None for codes of a matrix, which has no vectors.
    database_map : LinearMap, KernelMap or None
        Encodes database items that arrive later without similarities.
    database_map_is_learned : bool
        True where the objective was minimised over this map; False where it was fitted to free codes afterwards.
    database_codes : BinaryCodes or None
        Codes of the database items of the training.
    query_codes : BinaryCodes or None
        Codes of the training queries, kept where new items can be encoded by their similarities to them.
    objective : Objective or None
        None for methods that minimise something else.
    provenance : mapping
        Method parameters, similarity, versions; JSON values. Kept as a read-only copy.

    Examples
    --------
    >>> import asymhash as ah
    >>> vectors = np.random.default_rng(0).standard_normal((60, 3))
    >>> ah.LSH(n_bits=8, random_state=0).fit(vectors).model_
    Model(LSH, 8 bits, 3 features, 60 database codes)
    """

    method: str
    n_bits: int
    query_map: Encoder | None = None
    database_map: Encoder | None = None
    database_map_is_learned: bool = True
    database_codes: BinaryCodes | None = None
    query_codes: BinaryCodes | None = None
    objective: Objective | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_integer(self.n_bits, where="Model", name="n_bits", low=1, high=MAX_BITS)
        _check_parts(self)
        object.__setattr__(self, "provenance", frozen_metadata(self.provenance))

    @property
    def threshold(self) -> float | None:
        """Theta of the paper: pairs whose codes have a larger inner product are called similar."""
        return None if self.objective is None else self.objective.theta

    @property
    def n_features(self) -> int | None:
        """Length of the vectors that the model takes."""
        return None if self.query_map is None else self.query_map.n_features

    def encode_queries(self, X: ArrayLike) -> BinaryCodes:
        """Encode queries.

        Parameters
        ----------
        X : array of shape (n_queries, n_features)

        Returns
        -------
        BinaryCodes
        """
        query_map = self._needed(self.query_map, "encode_queries", "a query map")
        return query_map.encode(self._vectors(X, query_map, "encode_queries"))

    def project(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the real-valued query side, whose signs are the codes of `encode_queries`.

        Parameters
        ----------
        X : array of shape (n_queries, n_features)

        Returns
        -------
        float64 array of shape (n_queries, n_bits)
        """
        query_map = self._needed(self.query_map, "project", "a query map")
        return query_map.project(self._vectors(X, query_map, "project"))

    def encode_database(self, X: ArrayLike | None, similarity: Similarity | None = None) -> BinaryCodes:
        """Encode database items; `database_encoding` tells beforehand by which of two ways.

        Parameters
        ----------
        X : array of shape (n_items, n_features)
            May be None for a model of a matrix, which needs similarities alone.
        similarity : Similarity of shape (n_training_queries, n_items), optional
            Which of the *training queries* are similar to the new items. With it, each item gets the code that
            no flip of a single bit improves; without it, a linear map encodes.

        Returns
        -------
        BinaryCodes
        """
        where = f"{self.method}.encode_database"
        way = self.database_encoding(with_similarity=similarity is not None)
        if similarity is None or way != "free codes":
            database_map = self._needed(self.database_map, "encode_database", "a database map")
            return database_map.encode(self._vectors(X, database_map, "encode_database"))
        start = None
        if self.database_map is not None:
            start = self.database_map.encode(self._vectors(X, self.database_map, "encode_database"))
        self._check_new_similarity(similarity, None if start is None else len(start), where)
        return self._free_codes(similarity, start)

    def database_encoding(self, *, with_similarity: bool) -> str:
        """Tell how `encode_database` encodes new items.

        Returns
        -------
        {"free codes", "learned linear map", "learned kernel map", "linear map fitted to the free codes"}
        """
        if with_similarity:
            if self.objective is None or self.query_codes is None:
                raise UnsupportedOperation(
                    f"{self.method}.encode_database: similarity is for a model with free database codes, got a "
                    "model whose database side is a map or was left out. Call it without similarity."
                )
            return "free codes"
        database_map = self._needed(self.database_map, "encode_database", "a database map")
        if not self.database_map_is_learned:
            return "linear map fitted to the free codes"
        return "learned kernel map" if isinstance(database_map, KernelMap) else "learned linear map"

    def query_side(self) -> Model:
        """Return what a client needs that sends codes of queries to a server: the query map and nothing else."""
        return Model(
            method=self.method,
            n_bits=self.n_bits,
            query_map=self._needed(self.query_map, "query_side", "a query map"),
            objective=self.objective,
            provenance=self.provenance,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one checked file that no reader can take for another; the old file stays until then.

        Parameters
        ----------
        path : str or path-like
        """
        arrays: dict[str, NDArray[Any]] = {}
        for name in ("query_map", "database_map"):
            encoder: Encoder | None = getattr(self, name)
            if encoder is not None:
                arrays |= {f"{name}.{part}": array for part, array in arrays_of(encoder).items()}
        for name in ("database_codes", "query_codes"):
            codes: BinaryCodes | None = getattr(self, name)
            if codes is not None:
                arrays[name] = codes.words
        objective = self.objective
        metadata = {
            "method": self.method,
            "n_bits": self.n_bits,
            "database_map_is_learned": self.database_map_is_learned,
            "objective": None if objective is None else vars(objective),
            "provenance": dict(self.provenance),
        }
        save_artifact(path, kind=_KIND, arrays=arrays, metadata=metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read a model written by `save`.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        Model
        """
        arrays, metadata = load_artifact(path, kind=_KIND)
        try:
            return _model_of_parts(arrays, metadata)
        except (InvalidArgument, InvalidType) as error:
            raise DamagedFile(
                f"{os.fspath(path)}: {error} Restore it from a copy or make it again."
            ) from error

    def __repr__(self) -> str:
        features = "" if self.n_features is None else f", {self.n_features} features"
        stored = "no" if self.database_codes is None else str(len(self.database_codes))
        return f"Model({self.method}, {self.n_bits} bits{features}, {stored} database codes)"

    def _needed(self, part: Encoder | None, call: str, name: str) -> Encoder:
        if part is None:
            raise UnsupportedOperation(
                f"{self.method}.{call}: expected a model with {name}, got one without. "
                "Use the whole model of a method that takes vectors."
            )
        return part

    def _vectors(self, X: ArrayLike | None, encoder: Encoder, call: str) -> NDArray[Any]:
        return check_vectors(
            X, where=f"{self.method}.{call}", name="X", n_features=encoder.n_features, min_items=0
        )

    def _check_new_similarity(self, similarity: Similarity, n_items: int | None, where: str) -> None:
        if not isinstance(similarity, Similarity):
            raise invalid(
                where,
                "similarity must be a Similarity",
                f"a {type(similarity).__name__}",
                "Make one by asymhash.similarity.",
            )
        assert self.query_codes is not None
        wanted = (len(self.query_codes), similarity.n_items if n_items is None else n_items)
        if similarity.shape != wanted:
            expected = f"similarity must have the shape {wanted} (training queries, new items)"
            raise invalid(where, expected, str(similarity.shape))

    def _free_codes(self, similarity: Similarity, start: BinaryCodes | None) -> BinaryCodes:
        assert self.query_codes is not None and self.objective is not None
        query_signs = self.query_codes.to_signs()
        if start is None:
            start = BinaryCodes.from_bools(np.ones((similarity.n_items, self.n_bits), dtype=bool))
        step = max(1, _FREE_BLOCK_PAIRS // max(similarity.n_queries, 1))
        parts = []
        for first in range(0, max(similarity.n_items, 1), step):
            block = slice(first, first + step)
            signs = fit_free_codes(
                query_signs,
                similarity.columns(block),
                start[block].to_signs(),
                theta=self.objective.theta,
                beta=self.objective.beta,
                loss=scaled(LOSSES[self.objective.loss], self.objective.scale),
            )
            parts.append(BinaryCodes.from_signs(signs))
        return BinaryCodes.concatenate(parts)


def _check_parts(model: Model) -> None:
    """Refuse parts that are not of one model."""
    for name, kind, words in (
        ("query_map", Encoder, "a LinearMap, a KernelMap"),
        ("database_map", Encoder, "a LinearMap, a KernelMap"),
        ("database_codes", BinaryCodes, "BinaryCodes"),
        ("query_codes", BinaryCodes, "BinaryCodes"),
    ):
        part = getattr(model, name)
        if part is None:
            continue
        if not isinstance(part, kind):
            raise invalid_type("Model", f"{name} must be {words} or None", f"a {type(part).__name__}")
        if part.n_bits != model.n_bits:
            expected = f"{name} must have the {model.n_bits} bits of the model"
            raise invalid("Model", expected, str(part.n_bits))
    maps = model.query_map, model.database_map
    if maps[0] is not None and maps[1] is not None and maps[0].n_features != maps[1].n_features:
        expected = f"database_map must have the {maps[0].n_features} features of query_map"
        raise invalid("Model", expected, str(maps[1].n_features))
    if not isinstance(model.provenance, Mapping):
        raise invalid_type("Model", "provenance must be a mapping", f"a {type(model.provenance).__name__}")


def _model_of_parts(arrays: dict[str, NDArray[Any]], metadata: dict[str, Any]) -> Model:
    """Put a model together from what a file holds; an error names the section that does not fit the others."""
    about = "section metadata"
    names = {"method", "n_bits", "database_map_is_learned", "objective", "provenance"}
    if set(metadata) != names:
        raise invalid(
            about, f"there must be {', '.join(sorted(names))}", ", ".join(sorted(metadata)) or "none"
        )
    n_bits = check_integer(metadata["n_bits"], where=about, name="n_bits", low=1, high=MAX_BITS)
    for name, kind in (("method", str), ("database_map_is_learned", bool), ("provenance", dict)):
        if not isinstance(metadata[name], kind):
            raise invalid_type(
                about, f"{name} must be a {kind.__name__}", f"a {type(metadata[name]).__name__}"
            )
    arrays = dict(arrays)
    query_map, database_map = (take_encoder(name, arrays, n_bits) for name in ("query_map", "database_map"))
    if query_map and database_map and query_map.n_features != database_map.n_features:
        expected = f"the weights must have the {query_map.n_features} features of query_map"
        raise invalid("section database_map.weights", expected, str(database_map.n_features))
    codes = {}
    for name in ("database_codes", "query_codes"):
        try:
            codes[name] = BinaryCodes(arrays.pop(name), n_bits) if name in arrays else None
        except AsymhashError as error:
            raise invalid(
                f"section {name}", f"there must be codes of {n_bits} bits", "others", str(error)
            ) from error
    if arrays:
        raise invalid(f"section {min(arrays)}", "there must be no such section", "one")
    return Model(
        method=metadata["method"],
        n_bits=n_bits,
        query_map=query_map,
        database_map=database_map,
        database_map_is_learned=metadata["database_map_is_learned"],
        objective=_objective_of_parts(metadata["objective"], about),
        provenance=metadata["provenance"],
        **codes,
    )


def _objective_of_parts(parts: Any, where: str) -> Objective | None:
    if parts is None:
        return None
    if not isinstance(parts, dict) or set(parts) != {"loss", "beta", "theta", "scale"}:
        raise invalid(where, "objective must have loss, beta, theta and scale", repr(parts))
    return Objective(
        check_choice(parts["loss"], where=where, name="loss", choices=tuple(LOSSES)),
        check_number(parts["beta"], where=where, name="beta", above=0.0, below=1.0),
        check_number(parts["theta"], where=where, name="theta"),
        check_number(parts["scale"], where=where, name="scale", above=0.0),
    )


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model from a file, refusing by name one that is damaged, newer or something else.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    Model
    """
    return Model.load(path)
