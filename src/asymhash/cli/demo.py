"""`asymhash demo`: what the package does, seen in a minute."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from asymhash.cli.options import jobs_option, quiet_option
from asymhash.cli.wording import UsageError, note, print_table
from asymhash.methods import METHODS, find_method

if TYPE_CHECKING:
    from asymhash.cli.search import Found
    from asymhash.cli.tables import Summary

__all__ = ["DemoResult", "DemoSize", "demo", "run_demo"]


@dataclass(frozen=True)
class DemoSize:
    """How large the demo is; the tests run a smaller one.

    Parameters
    ----------
    sources : tuple of str
        Data sets; "digits" among them is searched.
    bits : tuple of int
        The code lengths.
    n_train, max_queries : int
        Database items and queries.
    average : int
        Neighbours that are similar, on average.
    """

    sources: tuple[str, ...] = ("digits", "uniform10", "nursery")
    bits: tuple[int, ...] = (8, 16, 24, 32)
    n_train: int = 1000
    max_queries: int = 3000
    average: int = 50


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the demo found.

    Attributes
    ----------
    summaries : list of Summary
        One for each data set, method and length.
    found : Found
        The search among the digits.
    """

    summaries: list[Summary]
    found: Found


def run_demo(folder: Path, size: DemoSize, *, jobs: int | None, quiet: bool) -> DemoResult:
    """Learn, measure, search, and draw both pictures into `folder`."""
    from asymhash.cli.pictures import draw_average_precision, draw_search
    from asymhash.cli.running import run_with_progress
    from asymhash.cli.search import find_nearest_digits
    from asymhash.cli.tables import summarise
    from asymhash.experiments import Split, Trial

    searched = ("digits", next(iter(METHODS)))
    trials = [
        Trial(
            Split(source=source, average=size.average, n_train=size.n_train, max_queries=size.max_queries),
            method,
            size.bits,
            keep_codes=(source, method) == searched,
            parameters=find_method(method).quick,
        )
        for source in size.sources
        for method in METHODS
    ]
    outcomes = run_with_progress(trials, jobs=jobs, quiet=quiet)
    summaries = summarise([record for outcome in outcomes for record in outcome.records])
    codes = next(outcome.codes for outcome in outcomes if outcome.codes is not None)
    found = find_nearest_digits(codes, query=min(1, len(codes.query_ids) - 1))
    draw_average_precision(summaries, folder / "ap-against-bits.png")
    draw_search(found, folder / "search.png")
    return DemoResult(summaries, found)


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("asymhash-demo"),
    show_default=True,
    help="The folder for the two pictures; it is made, and pictures of an earlier demo are replaced.",
)
@jobs_option
@quiet_option
def demo(output: Path, jobs: int | None, quiet: bool) -> None:
    """Compare methods and search, in a minute.

    Learns every method on three small data sets, prints their average precision, searches the digits nearest
    to one of them, and draws both.

    Example: asymhash demo --output pictures
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"--output: expected a folder, got {output}, which is or lies in a file.") from None
    size = DemoSize()
    note("Learning codes of 8 to 32 bits with every method on three small data sets ...", quiet=quiet)
    begin = time.perf_counter()
    result = run_demo(output, size, jobs=jobs, quiet=quiet)
    print_summaries(result.summaries)
    click.echo("MLH learns in a tenth of its authors' epochs here; asymhash evaluate gives it all of them.\n")
    _print_search(result.found)
    click.echo("")
    click.echo(f"Done in {time.perf_counter() - begin:.0f} s. Pictures:")
    click.echo(f"  {output / 'ap-against-bits.png'}")
    click.echo(f"  {output / 'search.png'}")
    click.echo("")
    click.echo("Next, with your own vectors:")
    click.echo("  asymhash evaluate vectors.npy --bits 16              which method suits them?")
    click.echo("  asymhash fit vectors.npy --bits 16 --output model.ahm")
    click.echo("  asymhash encode model.ahm new.npy --side query --output codes.npy")


def print_summaries(summaries: list[Summary]) -> None:
    """Print one table for each data set: a row for each method, step and anchored AP at each length."""
    from asymhash.cli.tables import CAPPED

    for source in dict.fromkeys(summary.source for summary in summaries):
        own = [summary for summary in summaries if summary.source == source]
        lengths = dict.fromkeys(summary.n_bits for summary in own)
        rows = [
            [find_method(method).title, *(_cell(summary) for summary in own if summary.method == method)]
            for method in dict.fromkeys(summary.method for summary in own)
        ]
        title = f"{source}: average precision, step rule / anchored as in the paper"
        print_table(title, ["method", *(f"{n_bits} bits" for n_bits in lengths)], rows)
        if any(summary.n_bits_used != summary.n_bits for summary in own):
            click.echo(CAPPED)
        click.echo("")


def _cell(summary: Summary) -> str:
    from asymhash.cli.tables import star

    return f"{summary.means['step_pairs']:.3f} / {summary.means['anchored_pairs']:.3f}{star(summary)}"


def _print_search(found: Found) -> None:
    from asymhash.cli.search import describe

    for line in describe(found):
        click.echo(line)
