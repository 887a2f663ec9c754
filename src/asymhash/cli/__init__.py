"""The command line: parse, call the library, print."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import click

from asymhash.cli.demo import demo
from asymhash.cli.encode import encode
from asymhash.cli.evaluate import evaluate
from asymhash.cli.fit import fit
from asymhash.cli.info import info
from asymhash.cli.methods import methods
from asymhash.cli.wording import EXIT_INTERRUPTED, exit_code, one_line
from asymhash.errors import AsymhashError

__all__ = ["asymhash", "main"]


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
)
@click.pass_context
@click.version_option(package_name="asymhash")
def asymhash(context: click.Context) -> None:
    """Learn short binary codes from vectors: one hash function for queries, another for the database.

    Results go to stdout, progress and notes to stderr. Exit code 0: done; 1: the work failed; 2: the call was
    wrong. Begin with: asymhash demo
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in (demo, fit, encode, evaluate, methods, info):
    asymhash.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and turn every failure that is foreseen into one line and an exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
        0: done, 1: the work failed, 2: the call was wrong, 130: interrupted.
    """
    is_main = threading.current_thread() is threading.main_thread()
    # so that `kill` leaves no temporary file either
    before = signal.signal(signal.SIGTERM, _leave) if is_main else None
    try:
        code = asymhash.main(args=arguments, prog_name="asymhash", standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted. No output was left half-written.", err=True)
        return EXIT_INTERRUPTED
    except (click.ClickException, AsymhashError, OSError, MemoryError) as error:
        click.echo(one_line(error), err=True)
        return exit_code(error)
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)
    return code if isinstance(code, int) else 0


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
