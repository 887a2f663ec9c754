"""Trials of methods on data sets under the paper's protocol, in one process or several, with equal results.

A trial fits one method once at its longest length and reads the shorter codes off it where the method nests;
other methods are fitted once for each length.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.queues
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from asymhash import datasets, kernels
from asymhash.codes import BinaryCodes
from asymhash.errors import AsymhashError
from asymhash.evaluate import PaperProtocol, average_precisions, paper_protocol
from asymhash.methods import find_method
from asymhash.vectors import read_vectors

__all__ = ["KeptCodes", "Outcome", "Record", "Split", "Trial", "run_trial", "run_trials"]

ProgressCallback = Callable[[int, int], None]
"""Called with the number of a trial and how many of its bits are learned."""


@dataclass(frozen=True)
class Split:
    """How a data set is cut for a trial; the defaults are the paper's.

    Parameters
    ----------
    source : str
        A name of `datasets.names()`, or else the path of a vectors file.
    seed : int
        Of the permutation, and of the methods.
    average : int
        Neighbours of a training point that are similar, on average.
    rule : {"pooled", "mean_kth"}
        The threshold rule of `similarity.neighbors`.
    n_train, max_queries : int
        Database items and queries.
    prepare : {"paper", "none"}
        Whether vectors are centred and divided by their length first.
    key : str, optional
        The array of a .npz file.
    """

    source: str
    seed: int = 0
    average: int = 50
    rule: str = "pooled"
    n_train: int = 1000
    max_queries: int = 3000
    prepare: str = "paper"
    key: str | None = None


@dataclass(frozen=True)
class Trial:
    """One method on one split.

    Parameters
    ----------
    split : Split
        The data.
    method : str
        A name of `methods.METHODS`.
    bits : tuple of int
        The code lengths that are measured.
    pca : int, optional
        Principal components that the method keeps; for methods that take them.
    keep_codes : bool
        Whether the outcome carries the longest codes, and of which items they are.
    parameters : tuple of (name, value)
        Further parameters of the method; its defaults for all others.
    """

    split: Split
    method: str
    bits: tuple[int, ...]
    pca: int | None = None
    keep_codes: bool = False
    parameters: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Record:
    """What was measured for one method, data set, length and seed.

    Attributes
    ----------
    source, method : str
        What was tried.
    n_bits, n_bits_used : int
        The length asked for, and the one that the method could give.
    seed : int
        The seed.
    average_precisions : dict of str to float
        As `evaluate.average_precisions` names them.
    seconds : float
        The time until the codes of this length were learned.
    """

    source: str
    method: str
    n_bits: int
    n_bits_used: int
    seed: int
    average_precisions: dict[str, float]
    seconds: float


@dataclass(frozen=True)
class KeptCodes:
    """The longest codes of a trial.

    Attributes
    ----------
    queries, database : BinaryCodes
        One code for each item of either side.
    query_ids, database_ids : int64 arrays
        Which items of the source they are.
    """

    queries: BinaryCodes
    database: BinaryCodes
    query_ids: NDArray[np.int64]
    database_ids: NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """What a trial gives back.

    Attributes
    ----------
    trial : Trial
        What was asked.
    records : tuple of Record
        One for each length.
    n_database, n_queries : int
        The items and queries that there were.
    codes : KeptCodes or None
        The longest codes, where they were asked for.
    """

    trial: Trial
    records: tuple[Record, ...]
    n_database: int
    n_queries: int
    codes: KeptCodes | None = None


@lru_cache(maxsize=1)  # trials on one split come one after the other
def _load_split(split: Split) -> PaperProtocol:
    is_name = split.source in datasets.names()
    source = split.source if is_name else read_vectors(split.source, key=split.key, where="evaluate")
    return paper_protocol(
        source,
        random_state=split.seed,
        rule=split.rule,
        average=split.average,
        n_train=split.n_train,
        max_queries=split.max_queries,
        prepare=split.prepare,
    )


def run_trial(trial: Trial, on_bits: Callable[[int], None] | None = None) -> Outcome:
    """Fit and measure one method on one split.

    Parameters
    ----------
    trial : Trial
        What to do.
    on_bits : callable, optional
        Called with the number of bits that are learned, as they come.

    Returns
    -------
    Outcome
        One record for each length.

    Examples
    --------
    >>> outcome = run_trial(Trial(Split("uniform10", max_queries=100), "lsh", (8, 16)))
    >>> [record.n_bits for record in outcome.records]
    [8, 16]
    """
    split = _load_split(trial.split)
    method = find_method(trial.method)
    pca = trial.pca if method.takes_pca else None
    n_features = split.database.shape[1] if pca is None else min(pca, split.database.shape[1])
    fitted: dict[int, tuple[Any, float]] = {}
    records = []
    nests = _estimator(trial, max(trial.bits), pca).nests
    for n_bits in sorted(trial.bits):
        used = method.longest(n_bits, n_features)
        length = method.longest(max(trial.bits), n_features) if nests else used
        if length not in fitted:
            fitted[length] = _fit(trial, split, length, pca, on_bits if nests else None)
        hasher, seconds = fitted[length]
        if used != length:
            hasher = hasher.truncate(used)
            seconds = sum(record.seconds for record in hasher.history_) or seconds
        query_codes, database_codes = hasher.encode_queries(split.queries), hasher.database_codes_
        records.append(
            Record(
                source=Path(trial.split.source).stem,
                method=trial.method,
                n_bits=n_bits,
                n_bits_used=used,
                seed=trial.split.seed,
                average_precisions=average_precisions(query_codes, database_codes, split.test_similarity),
                seconds=seconds,
            )
        )
        if on_bits is not None:
            on_bits(max(trial.bits) if nests else n_bits)
    kept = KeptCodes(query_codes, database_codes, split.query_ids, split.database_ids)
    return Outcome(
        trial, tuple(records), len(split.database), len(split.queries), kept if trial.keep_codes else None
    )


def _estimator(trial: Trial, n_bits: int, pca: int | None) -> Any:
    method = find_method(trial.method)
    return method.create(n_bits, random_state=trial.split.seed, pca=pca, **dict(trial.parameters))


def _fit(
    trial: Trial, split: PaperProtocol, n_bits: int, pca: int | None, on_bits: Callable[[int], None] | None
) -> tuple[Any, float]:
    method, hasher = find_method(trial.method), _estimator(trial, n_bits, pca)
    begin = time.perf_counter()
    if method.takes_queries:
        hasher.fit(
            split.database,
            split.train_similarity,
            callback=None if on_bits is None else lambda record: on_bits(record.n_bits),
        )
    elif method.learns_similarity:
        hasher.fit(split.database, split.train_similarity)
    else:
        hasher.fit(split.database)
    return hasher, time.perf_counter() - begin


def run_trials(
    trials: Iterable[Trial], *, jobs: int = 1, on_progress: ProgressCallback | None = None
) -> list[Outcome]:
    """Run many trials, several at once where there are cores; the results do not depend on `jobs`.

    Linear algebra runs on one thread in every process, also with one job, because sums on several threads
    differ in their last bits.

    Parameters
    ----------
    trials : iterable of Trial
        What to do; trials on one split should follow each other.
    jobs : int, default 1
        How many processes work at once.
    on_progress : callable, optional
        Called with the number of a trial and how many of its bits are learned.

    Returns
    -------
    list of Outcome
        In the order of the trials.

    Examples
    --------
    >>> split = Split("uniform10", max_queries=100)
    >>> [outcome.n_queries for outcome in run_trials([Trial(split, "lsh", (8,))])]
    [100]
    """
    tasks = list(trials)
    report = on_progress or (lambda number, n_bits: None)
    if min(jobs, len(tasks)) <= 1:
        with threadpool_limits(1):
            return [
                run_trial(task, lambda n_bits, number=number: report(number, n_bits))  # type: ignore[misc]
                for number, task in enumerate(tasks)
            ]
    return _run_in_pool(tasks, min(jobs, len(tasks)), report)


def _run_in_pool(tasks: Sequence[Trial], jobs: int, report: ProgressCallback) -> list[Outcome]:
    context = multiprocessing.get_context("spawn")  # fork would copy the threads' locks of BLAS and rich
    steps: multiprocessing.queues.SimpleQueue[tuple[int, int]] = context.SimpleQueue()
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(jobs, mp_context=context, initializer=_start_worker, initargs=(steps,))
    try:
        with _interrupts_ignored():
            futures = [executor.submit(_run_in_worker, number, task) for number, task in enumerate(tasks)]
        pending: set[Future[Outcome]] = set(futures)
        while pending:
            done, pending = wait(pending, timeout=0.1, return_when=FIRST_EXCEPTION)
            while not steps.empty():
                report(*steps.get())
            for future in done:
                future.result()
        return [future.result() for future in futures]
    except BaseException as error:
        # Workers in the middle of a fit would keep the cores busy for a while after Ctrl-C.
        executor.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        if isinstance(error, BrokenProcessPool):
            raise AsymhashError(
                "evaluate: expected every worker process to finish, got one that was killed. "
                "If the memory was exhausted, use fewer jobs."
            ) from None
        raise
    finally:
        executor.shutdown()


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Start worker processes that do not see Ctrl-C: the parent ends them, and they print no tracebacks."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_steps: multiprocessing.queues.SimpleQueue[tuple[int, int]] | None = None  # set in worker processes only
_limits = contextlib.ExitStack()  # held for the life of a worker process


def _start_worker(steps: multiprocessing.queues.SimpleQueue[tuple[int, int]]) -> None:
    """Prepare a worker process: one thread for linear algebra and kernels, gone when its parent is gone."""
    global _steps
    _steps = steps
    _limits.enter_context(threadpool_limits(1))
    _limits.enter_context(kernels.limit_threads(1))
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run_in_worker(number: int, trial: Trial) -> Outcome:
    steps = _steps
    assert steps is not None
    return run_trial(trial, lambda n_bits: steps.put((number, n_bits)))
