"""How the command line speaks: one-line errors, exit codes, notes, tables, JSON, progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from asymhash.errors import AsymhashError, InvalidArgument, InvalidType

if TYPE_CHECKING:
    from rich.console import Console

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
    "stdout_console",
]

EXIT_FAILED = 1
EXIT_WRONG_CALL = 2
EXIT_INTERRUPTED = 130

_NARROW = 120  # columns of a table that goes into a file


class UsageError(AsymhashError):
    """The call was wrong in a way that click does not see."""


def exit_code(error: BaseException) -> int:
    """Tell a wrong call from work that failed."""
    if isinstance(error, (click.UsageError, UsageError, InvalidArgument, InvalidType)):
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


def stdout_console() -> Console:
    """Make the console for results; lines do not depend on the terminal when there is none."""
    from rich.console import Console

    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=_NARROW)


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, n_text: int = 1
) -> None:
    """Write a table to stdout; its first `n_text` columns are text, the others numbers."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < n_text else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = stdout_console()
    console.print(title, soft_wrap=True)
    console.print(table)


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
