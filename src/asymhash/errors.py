"""Every error that asymhash raises on purpose.

Messages have one grammar, "where: what was expected, got what came. What to do.", and one writer each:
`invalid` for wrong values and `invalid_type` for wrong types.
"""

from __future__ import annotations

__all__ = [
    "AsymhashError",
    "DamagedFile",
    "InvalidArgument",
    "InvalidType",
    "MissingData",
    "MissingExtra",
    "UnsupportedOperation",
    "UnsupportedVersion",
    "invalid",
    "invalid_type",
]


class AsymhashError(Exception):
    """Catch this to catch everything that asymhash raises on purpose."""


class InvalidArgument(AsymhashError, ValueError):
    """An argument has the right type and a value that cannot be used."""


class InvalidType(AsymhashError, TypeError):
    """An argument has a type that cannot be used."""


class DamagedFile(AsymhashError, OSError):
    """A file is not what was once written: a flipped byte, a missing end, something appended."""


class UnsupportedVersion(AsymhashError, OSError):
    """A file was written by a newer asymhash than this one."""


class MissingData(AsymhashError, FileNotFoundError):
    """A data set is not on this machine."""


class MissingExtra(AsymhashError, ImportError):
    """An optional package is not installed."""


class UnsupportedOperation(AsymhashError):
    """The method or model cannot do what was asked, whatever the arguments."""


def _message(where: str, expected: str, found: str, remedy: str) -> str:
    return f"{where}: {expected}, got {found}." + (f" {remedy}" if remedy else "")


def invalid(where: str, expected: str, found: str, remedy: str = "") -> InvalidArgument:
    """Write the error for a wrong value; the caller raises it.

    Parameters
    ----------
    where : str
        The class or function that was called, as the caller knows it.
    expected : str
        What was expected, naming the argument.
    found : str
        What came instead.
    remedy : str, optional
        One sentence that tells what to do, with its full stop.

    Returns
    -------
    InvalidArgument

    Examples
    --------
    >>> print(invalid("LinV", "n_bits must be an integer from 1 to 1024", "0"))
    LinV: n_bits must be an integer from 1 to 1024, got 0.
    """
    return InvalidArgument(_message(where, expected, found, remedy))


def invalid_type(where: str, expected: str, found: str, remedy: str = "") -> InvalidType:
    """Write the error for a wrong type; the caller raises it.

    Parameters
    ----------
    where, expected, found, remedy : str
        As for `invalid`.

    Returns
    -------
    InvalidType

    Examples
    --------
    >>> print(invalid_type("LinV", "n_bits must be an integer from 1 to 1024", "a str"))
    LinV: n_bits must be an integer from 1 to 1024, got a str.
    """
    return InvalidType(_message(where, expected, found, remedy))
