"""`asymhash evaluate`: measure methods on a data set, or a saved model on vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from asymhash.cli.options import (
    ExistingFile,
    build_similarity,
    jobs_option,
    json_option,
    key_option,
    method_names,
    quiet_option,
    read_checked,
    similarity_options,
)
from asymhash.cli.running import run_with_progress
from asymhash.cli.tables import CAPPED, COLUMNS, cells, record_as_json, summarise, summary_as_json
from asymhash.cli.wording import UsageError, note, print_json, print_table

if TYPE_CHECKING:
    from asymhash.experiments import Trial

__all__ = ["evaluate"]

_DEFAULT_BITS = (8, 16, 32)
# An option of the other way to call would be ignored, so it is refused.
_ONLY_WITH_SOURCE = (
    "methods",
    "bits",
    "seeds",
    "rule",
    "train_items",
    "max_queries",
    "pca",
    "no_refine",
    "jobs",
)
_ONLY_WITH_MODEL = ("queries", "database", "stored_codes", "radius", "labels", "tags", "query_labels")


@click.command()
@click.argument("source", required=False)
@click.option("--method", "methods", type=method_names(), multiple=True, help="Repeatable. [default: all]")
@click.option("--bits", type=click.IntRange(1, 1024), multiple=True, help="Repeatable. [default: 8, 16, 32]")
@click.option(
    "--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="How many seeds, from 0."
)
@click.option(
    "--rule",
    type=click.Choice(["pooled", "mean_kth"]),
    default="pooled",
    show_default=True,
    help="Radius with exactly so many neighbours on average, or as in the authors' code.",
)
@click.option(
    "--train-items",
    type=click.IntRange(min=2),
    default=1000,
    show_default=True,
    help="How many items are database and training queries.",
)
@click.option(
    "--max-queries",
    type=click.IntRange(min=1),
    default=3000,
    show_default=True,
    help="How many of the other items are queries.",
)
@click.option("--pca", type=click.IntRange(min=1), help="Keep so many principal components first.")
@click.option("--no-refine", is_flag=True, help="Only the paper's optimisation, where a method has more.")
@jobs_option
@click.option("--model", type=ExistingFile, help="Measure this model instead of learning.")
@click.option("--queries", type=ExistingFile, help="With --model: the vectors of the queries.")
@click.option("--database", type=ExistingFile, help="With --model: the vectors of the database.")
@click.option(
    "--stored-codes",
    is_flag=True,
    help="With --model: the codes that the model holds; --database is then what it was learned from.",
)
@similarity_options
@key_option
@quiet_option
@json_option
def evaluate(
    source: str | None, model: Path | None, as_json: bool, quiet: bool, key: str | None, **options: Any
) -> None:
    """Measure methods, or a saved model.

    SOURCE is the name of a data set (see asymhash info) or a vectors file. The paper's protocol: 1000 random
    items are database and training queries, up to 3000 others the queries, and 50 neighbours on average are
    similar. With --model, --queries and --database a saved model is measured instead.

    \b
    Example: asymhash evaluate nursery --method itq --bits 16 --seeds 3
    Example: asymhash evaluate --model m.ahm --queries q.npy --database d.npy
    """  # noqa: D301 - click reads the character backspace as "do not wrap"
    if (source is None) == (model is None):
        raise UsageError(
            "evaluate: expected either SOURCE or --model, got "
            + ("neither" if source is None else "both")
            + ". Give a data set, a vectors file, or a model."
        )
    if source is not None:
        _evaluate_source(source, key=key, as_json=as_json, quiet=quiet, options=options)
    else:
        _evaluate_model(model, key=key, as_json=as_json, quiet=quiet, options=options)


def _evaluate_source(
    source: str, *, key: str | None, as_json: bool, quiet: bool, options: dict[str, Any]
) -> None:
    from asymhash import datasets
    from asymhash.methods import find_method

    _refuse(_ONLY_WITH_MODEL, belong_to="--model", found="SOURCE")
    if source in datasets.names():
        _refuse(("key",), belong_to="a vectors file", found="a data set")
    if source not in datasets.names() and not Path(source).is_file():
        raise UsageError(
            f"evaluate: SOURCE must be a vectors file or one of {', '.join(datasets.names())}, "
            f"got {source!r}."
        )
    if source not in datasets.names():
        n_items = len(read_checked(Path(source), key=key, where="evaluate"))
        if n_items <= options["train_items"]:
            raise UsageError(
                f"--train-items must be below the {n_items} items of {source}, as the others are the queries, "
                f"got {options['train_items']}. Give fewer."
            )
    trials = _trials(source, key, options)
    for method in dict.fromkeys(find_method(trial.method) for trial in trials):
        if options["pca"] is not None and not method.takes_pca:
            note(
                f"{method.title} takes no principal components but its own; --pca is not for it.", quiet=quiet
            )
    outcomes = run_with_progress(trials, jobs=options["jobs"], quiet=quiet)
    records = [record for outcome in outcomes for record in outcome.records]
    summaries = summarise(records)
    if as_json:
        print_json(
            {
                "source": source,
                "n_database": outcomes[0].n_database,
                "n_queries": outcomes[0].n_queries,
                "neighbors": options["neighbors"] or 50,
                "rule": options["rule"],
                "summary": [summary_as_json(summary) for summary in summaries],
                "records": [record_as_json(record) for record in records],
            }
        )
        return
    seeds = options["seeds"]
    click.echo(
        f"{Path(source).stem}: {outcomes[0].n_database} database items, {outcomes[0].n_queries} queries, "
        f"{options['neighbors'] or 50} neighbours on average"
    )
    title = (
        f"Average precision, mean ± spread of {seeds} seeds" if seeds > 1 else "Average precision, one seed"
    )
    print_table(title, COLUMNS, [cells(summary) for summary in summaries])
    if any(summary.n_bits_used != summary.n_bits for summary in summaries):
        click.echo(CAPPED)


def _trials(source: str, key: str | None, options: dict[str, Any]) -> list[Trial]:
    from asymhash.experiments import Split, Trial
    from asymhash.methods import METHODS

    bits = tuple(sorted(set(options["bits"] or _DEFAULT_BITS)))
    return [
        Trial(
            Split(
                source=source,
                seed=seed,
                average=options["neighbors"] or 50,
                rule=options["rule"],
                n_train=options["train_items"],
                max_queries=options["max_queries"],
                key=key,
            ),
            method,
            bits,
            pca=options["pca"],
            parameters=(("refine", False),) if options["no_refine"] and METHODS[method].takes_queries else (),
        )
        for seed in range(options["seeds"])
        for method in dict.fromkeys(options["methods"] or METHODS)
    ]


def _evaluate_model(
    path: Path | None, *, key: str | None, as_json: bool, quiet: bool, options: dict[str, Any]
) -> None:
    from asymhash.evaluate import average_precisions
    from asymhash.model import load

    assert path is not None
    _refuse(_ONLY_WITH_SOURCE, belong_to="SOURCE", found="--model")
    if options["queries"] is None or options["database"] is None:
        raise UsageError("--model needs --queries and --database, got only one or none. Give both.")
    model = load(path)
    width = model.n_features
    queries = read_checked(options["queries"], key=key, where="--queries", n_features=width)
    database = read_checked(options["database"], key=key, where="--database", n_features=width)
    ways = {name: options[name] for name in ("neighbors", "radius", "labels", "tags", "query_labels")}
    relation = build_similarity(database, queries, **ways)
    if options["stored_codes"]:
        codes = _stored_codes(model, path, len(database))
    else:
        codes = model.encode_database(database)
        if model.database_codes is not None and len(model.database_codes) == len(database):
            note(f"{path} holds codes of {len(database)} items; --stored-codes uses them.", quiet=quiet)
    measured = average_precisions(model.encode_queries(queries), codes, relation)
    result = {
        "model": str(path),
        "n_bits": model.n_bits,
        "n_database": len(database),
        "n_queries": len(queries),
        "share_similar": relation.share_positive,
        "database_codes": "stored" if options["stored_codes"] else "encoded",
        "average_precision": measured,
    }
    if as_json:
        print_json(result)
        return
    click.echo(f"{path}: {model.n_bits} bits, {len(queries):,} queries, {len(database):,} items")
    click.echo(f"{relation}")
    for name, value in measured.items():
        click.echo(f"AP {name:<18}{value:.3f}")


def _stored_codes(model: Any, path: Path, n_items: int) -> Any:
    if model.database_codes is None:
        raise UsageError(f"--stored-codes: {path} must hold database codes, got none. Leave the option out.")
    if len(model.database_codes) != n_items:
        raise UsageError(
            f"--stored-codes: expected {len(model.database_codes)} items in --database, as {path} holds, "
            f"got {n_items}. Give the vectors that it was learned from."
        )
    return model.database_codes


def _refuse(names: tuple[str, ...], *, belong_to: str, found: str) -> None:
    """Refuse options that were given though they mean nothing in this call."""
    context = click.get_current_context()
    for parameter in context.command.params:
        is_given = (
            context.get_parameter_source(parameter.name or "") is click.core.ParameterSource.COMMANDLINE
        )
        if parameter.name in names and is_given:
            raise UsageError(
                f"{parameter.opts[0]} belongs to {belong_to}, got it with {found}. Leave it out."
            )
