"""How many threads compiled kernels may use; never what they answer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from asymhash.checks import check_integer

__all__ = ["limit_threads", "n_threads", "usable_cores"]

_limit: ContextVar[int | None] = ContextVar("asymhash_threads", default=None)


def usable_cores() -> int:
    """Count the cores that this process may use.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> usable_cores() >= 1
    True
    """
    has_affinity = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1


def n_threads() -> int:
    """Count the threads that a kernel uses at most: all cores of this process, or fewer by `limit_threads`.

    Returns
    -------
    int

    Examples
    --------
    >>> n_threads() >= 1
    True
    """
    return _limit.get() or usable_cores()


@contextmanager
def limit_threads(n: int) -> Iterator[None]:
    """In a `with` block, use at most so many threads; results are the same for any number.

    A call without `with` does nothing: it only makes the context manager. To limit a single call there is its own
    `n_threads`, where it has one.

    Parameters
    ----------
    n : int
        At least 1.

    Examples
    --------
    >>> with limit_threads(1):
    ...     n_threads()
    1
    """
    token = _limit.set(check_integer(n, where="limit_threads", name="n", low=1))
    try:
        yield
    finally:
        _limit.reset(token)
