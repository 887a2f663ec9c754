"""Running trials under one progress bar."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from asymhash.cli.wording import show_progress
from asymhash.methods import find_method

if TYPE_CHECKING:
    from asymhash.experiments import Outcome, Trial

__all__ = ["run_with_progress"]


def run_with_progress(trials: Sequence[Trial], *, jobs: int | None, quiet: bool) -> list[Outcome]:
    """Run trials on the cores there are and draw how many bits of all of them are learned."""
    from asymhash.experiments import run_trials
    from asymhash.kernels import usable_cores

    learned = [0] * len(trials)
    with show_progress("Learning, bits", sum(max(trial.bits) for trial in trials), quiet=quiet) as steps:

        def report(number: int, n_bits: int) -> None:
            learned[number] = n_bits
            trial = trials[number]
            steps.show(sum(learned), f"{find_method(trial.method).title} on {Path(trial.split.source).stem}")

        return run_trials(trials, jobs=jobs or usable_cores(), on_progress=report)
