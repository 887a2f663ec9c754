"""How the command line speaks: one-line errors, exit codes, notes, tables, JSON, progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from asymhash.errors import AsymhashError, InvalidArgument, InvalidType, UnsupportedOperation

__all__ = [
    "EXIT_FAILED",
    "EXIT_INTERRUPTED",
    "EXIT_WRONG_CALL",
    "Steps",
    "UsageError",
    "exit_code",
    "note",
    "one_line",
    "print_json",
    "print_table",
    "show_progress",
]

EXIT_FAILED = 1
EXIT_WRONG_CALL = 2
EXIT_INTERRUPTED = 130


class UsageError(AsymhashError):
    """The call was wrong in a way that click does not see."""


def exit_code(error: BaseException) -> int:
    """Tell a wrong call from work that failed."""
    if isinstance(error, (click.UsageError, UsageError, InvalidArgument, InvalidType, UnsupportedOperation)):
        return EXIT_WRONG_CALL
    return EXIT_FAILED


def one_line(error: BaseException) -> str:
    """Write an error as one line."""
    if isinstance(error, click.UsageError):
        text = error.format_message()
        command = error.ctx.command_path if error.ctx is not None else "asymhash"
        text = f"{text.rstrip('.')}. See {command} --help."
    elif isinstance(error, click.ClickException):
        text = error.format_message()
    elif isinstance(error, MemoryError):
        found = str(error) or "no size given"
        text = f"expected the work to fit in memory, got too little ({found}). Use fewer items or bits."
    elif isinstance(error, OSError) and not isinstance(error, AsymhashError) and error.strerror:
        text = f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    else:
        text = str(error)
    return "Error: " + " ".join(text.split())


def note(message: str, *, quiet: bool = False) -> None:
    """Write a line for people to stderr."""
    if not quiet:
        click.echo(message, err=True)


def print_json(value: Any) -> None:
    """Write a result for machines to stdout."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, n_text: int = 1
) -> None:
    """Write a table to stdout; its first `n_text` columns are text, the others numbers."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        parts = [
            cell.ljust(width) if number < n_text else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(parts).rstrip()

    click.echo(title)
    click.echo(line(columns))
    click.echo("─" * (sum(widths) + 2 * (len(widths) - 1)))
    for row in rows:
        click.echo(line(row))


class Steps:
    """A progress bar that counts up to a total, or nothing at all where nobody looks."""

    def __init__(self, bar: Any = None, task: Any = None) -> None:
        self._bar = bar
        self._task = task

    def show(self, completed: float, note: str = "") -> None:
        """Move the bar and write a few words beside it."""
        if self._bar is not None:
            self._bar.update(self._task, completed=completed, note=note)


@contextmanager
def show_progress(description: str, total: float, *, quiet: bool) -> Iterator[Steps]:
    """Draw progress on stderr, where it is a terminal and nobody asked for quiet."""
    if quiet or not sys.stderr.isatty():
        yield Steps()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Steps(bar, bar.add_task(description, total=total, note=""))
