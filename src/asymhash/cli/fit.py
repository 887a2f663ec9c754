"""`asymhash fit`: learn a model from vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from asymhash.cli.options import (
    ExistingFile,
    build_similarity,
    check_output,
    count_similarities,
    json_option,
    key_option,
    method_names,
    quiet_option,
    read_checked,
    similarity_options,
)
from asymhash.cli.wording import UsageError, note, print_json, show_progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from asymhash.methods import Method
    from asymhash.similarity import Similarity

__all__ = ["fit"]


@click.command()
@click.argument("vectors", type=ExistingFile)
@click.option("--method", type=method_names(), default="lin-v", show_default=True, help="How to learn.")
@click.option(
    "--bits", type=click.IntRange(1, 1024), default=16, show_default=True, help="Length of the codes."
)
@similarity_options
@click.option(
    "--similarity",
    type=ExistingFile,
    help="Similar: the ones of a scipy sparse matrix (.npz), or the +1 or True of a dense one (+1/-1 or bool), "
    "training queries x database items.",
)
@click.option(
    "--queries", type=ExistingFile, help="Vectors of the training queries. [default: the database itself]"
)
@key_option
@click.option("--pca", type=click.IntRange(min=1), help="Keep so many principal components first.")
@click.option("--no-refine", is_flag=True, help="Only the paper's optimisation: one bit after the other.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Same seed, same model."
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The model file to write (.ahm).",
)
@click.option("--force", is_flag=True, help="Replace an existing output.")
@quiet_option
@json_option
def fit(  # noqa: PLR0913 - one parameter for each option
    vectors: Path,
    method: str,
    bits: int,
    similarity: Path | None,
    queries: Path | None,
    key: str | None,
    pca: int | None,
    no_refine: bool,
    seed: int,
    output: Path,
    force: bool,
    quiet: bool,
    as_json: bool,
    **similar: Any,
) -> None:
    """Learn a model from vectors.

    VECTORS (.npy, .npz, .fvecs or .bvecs) are the database. What is similar is said by one of --neighbors
    (the default, with 50), --radius, --labels, --tags and --similarity.

    Example: asymhash fit vectors.npy --bits 32 --output model.ahm
    """
    from asymhash.methods import find_method

    check_output(output, force=force)
    row = find_method(method)
    way = count_similarities({name: similar[name] for name in _WAYS} | {"similarity": similarity})
    _refuse_what_means_nothing(row, way, queries=queries, pca=pca, query_labels=similar["query_labels"])
    database = read_checked(vectors, key=key, where="fit", min_items=2)
    query_vectors = None
    if queries is not None:
        query_vectors = read_checked(queries, key=key, where="--queries", n_features=database.shape[1])
    if no_refine and not row.takes_queries:
        raise UsageError(f"--method {row.name} has nothing to refine, got --no-refine. Leave it out.")
    hasher = row.create(bits, random_state=seed, pca=pca, refine=False if no_refine else None)
    relation = None
    if row.learns_similarity:
        note("Finding what is similar ...", quiet=quiet)
        relation = _relation(database, query_vectors, similarity, similar)
        note(f"{relation}", quiet=quiet)
    with show_progress(f"{row.title}, bits", bits, quiet=quiet) as steps:
        if relation is None:
            hasher.fit(database)
        elif not row.takes_queries:
            hasher.fit(database, relation)
        else:
            hasher.fit(
                database,
                relation,
                queries=query_vectors,
                callback=lambda record: steps.show(record.n_bits, f"objective {record.objective:.4f}"),
            )
    hasher.model_.save(output)
    _report(hasher, database, relation, method=row, output=output, as_json=as_json)


_WAYS = ("neighbors", "radius", "labels", "tags")


def _refuse_what_means_nothing(
    method: Method, way: str | None, *, queries: Path | None, pca: int | None, query_labels: Path | None
) -> None:
    """Refuse options that this method, or this way to say what is similar, would ignore."""
    given = [way, "queries" if queries else None, "query-labels" if query_labels else None]
    options = [name for name in given if name is not None]
    if options and not method.learns_similarity:
        raise UsageError(
            f"--method {method.name} learns from the database vectors alone, got --{options[0]}. Leave it out."
        )
    if queries is not None and not method.takes_queries:
        raise UsageError(
            f"--method {method.name} learns from the database as its own queries, got --queries. Leave it out."
        )
    if pca is not None and not method.takes_pca:
        raise UsageError(
            f"--method {method.name} takes no principal components but its own, got --pca. Leave it out."
        )
    if query_labels is not None and way == "similarity":
        raise UsageError(
            "--query-labels belongs to --labels or --tags, got it with --similarity. Leave it out."
        )


def _relation(
    database: NDArray[Any], queries: NDArray[Any] | None, matrix: Path | None, similar: dict[str, Any]
) -> Similarity:
    if matrix is None:
        return build_similarity(database, queries, **similar)
    from asymhash.similarity import from_matrix
    from asymhash.vectors import read_matrix

    return from_matrix(read_matrix(matrix, where="--similarity"))


def _report(
    hasher: Any,
    database: NDArray[Any],
    relation: Similarity | None,
    *,
    method: Method,
    output: Path,
    as_json: bool,
) -> None:
    history = list(hasher.history_) if method.takes_queries else []
    result = {
        "model": str(output),
        "method": method.name,
        "n_bits": hasher.model_.n_bits,
        "n_items": database.shape[0],
        "n_features": database.shape[1],
        "share_similar": None if relation is None else relation.share_positive,
        "objective": history[-1].objective if history else None,
        "threshold": hasher.model_.threshold if history else None,
        "seconds": sum(record.seconds for record in history) if history else None,
        "bytes": output.stat().st_size,
    }
    if as_json:
        print_json(result)
        return
    click.echo(f"{output}: {method.name}, {result['n_bits']} bits, {result['bytes']:,} bytes")
    click.echo(f"learned from {result['n_items']:,} items with {result['n_features']} features")
    if relation is not None and history:
        click.echo(
            f"{relation.share_positive:.2%} of the pairs similar, threshold {result['threshold']:g}, "
            f"objective {result['objective']:.6g}, {result['seconds']:.1f} s"
        )
