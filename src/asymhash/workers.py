"""Blocks of work in a few threads, results in order: for NumPy and kernels, which release the interpreter lock."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from threadpoolctl import ThreadpoolController

from asymhash import kernels

__all__ = ["in_threads"]

Block = TypeVar("Block")
Result = TypeVar("Result")

_AHEAD = 4  # blocks begun for each thread before the oldest result has been taken: enough never to wait


def in_threads(work: Callable[[Block], Result], blocks: Sequence[Block]) -> Iterator[Result]:
    """Yield `work(block)` for every block, in order; use it where a block is a few milliseconds of NumPy.

    As many threads work as the kernels may use (`kernels.limit_threads`), unless the BLAS library of NumPy is
    set to fewer (`threadpoolctl`), and BLAS itself then uses one: two products side by side are faster than one
    after the other cut in two, above all where other programs run.

    Parameters
    ----------
    work : callable
        Called in other threads, several at a time.
    blocks : sequence

    Yields
    ------
    result of work

    Examples
    --------
    >>> list(in_threads(abs, [-3, 2, -1]))
    [3, 2, 1]
    """
    if len(blocks) < 2:
        yield from map(work, blocks)
        return
    with _one_blas_thread() as n_blas_threads:
        n_threads = min(n_blas_threads, kernels.n_threads())
        if n_threads == 1:
            yield from map(work, blocks)
            return
        executor = ThreadPoolExecutor(n_threads, thread_name_prefix="asymhash")
        waiting: deque[Future[Result]] = deque()
        try:
            for block in blocks:
                waiting.append(executor.submit(work, block))
                if len(waiting) > _AHEAD * n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            # After an error, Ctrl-C or an iteration that was left: what has not begun never will.
            executor.shutdown(wait=True, cancel_futures=True)


class _BlasLimit:
    """One BLAS thread while anybody works here; the setting is one for the whole process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._n_blas_threads = 1

    @contextmanager
    def __call__(self) -> Iterator[int]:
        with self._lock:
            if self._users == 0:
                # A millisecond: it looks through the loaded libraries, of which there may be new ones.
                controller = ThreadpoolController().select(user_api="blas")
                self._n_blas_threads = max(
                    [library.num_threads for library in controller.lib_controllers], default=1
                )
                self._limiter = controller.limit(limits=1)
            self._users += 1
        try:
            yield self._n_blas_threads
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._limiter.restore_original_limits()


_one_blas_thread = _BlasLimit()
