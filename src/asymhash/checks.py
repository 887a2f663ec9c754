"""Checks of arguments, for every public function: they know no domain, only types, ranges and shapes.

Each returns the value in the form that the caller needs, or raises an error that names the argument,
what was expected and what came.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from asymhash.errors import AsymhashError, invalid, invalid_type

__all__ = [
    "check_boolean",
    "check_choice",
    "check_integer",
    "check_number",
    "check_vectors",
    "random_generator",
    "read_array",
]

# Elements looked at in one go: 1 MB of float64 stays in the cache for the second and third look.
_BLOCK_ELEMENTS = 1 << 17

# Larger numbers have no use here, and sums of their squares leave the range of float64.
_LARGEST = 1e100


def check_integer(value: object, *, where: str, name: str, low: int, high: int | None = None) -> int:
    """Check a whole number: a Python or NumPy integer, not a bool and not a float.

    Parameters
    ----------
    value : object
    where, name : str
        Who asks, and for which argument.
    low : int
        Smallest value allowed.
    high : int, optional
        Largest value allowed.

    Returns
    -------
    int

    Examples
    --------
    >>> check_integer(np.int32(8), where="LinV", name="n_bits", low=1, high=1024)
    8
    """
    allowed = f"from {low} to {high}" if high is not None else f"of at least {low}"
    expected = f"{name} must be an integer {allowed}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise invalid_type(where, expected, _describe(value))
    number = int(value)
    if number < low or (high is not None and number > high):
        raise invalid(where, expected, str(number))
    return number


def check_number(
    value: object,
    *,
    where: str,
    name: str,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> float:
    """Check a finite real number: Python or NumPy, not a bool.

    Parameters
    ----------
    value : object
    where, name : str
        Who asks, and for which argument.
    low, high : float, optional
        Smallest and largest value allowed.
    above, below : float, optional
        Bounds that are themselves not allowed.

    Returns
    -------
    float

    Examples
    --------
    >>> check_number(1, where="LinV", name="beta", above=0.0, high=1.0)
    1.0
    """
    bounds = {"of at least": low, "greater than": above, "of at most": high, "less than": below}
    allowed = " and ".join(f"{words} {bound:g}" for words, bound in bounds.items() if bound is not None)
    expected = f"{name} must be a finite number {allowed}".rstrip()
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise invalid_type(where, expected, _describe(value))
    number = float(value)
    inside = (
        math.isfinite(number)
        and (low is None or number >= low)
        and (high is None or number <= high)
        and (above is None or number > above)
        and (below is None or number < below)
    )
    if not inside:
        raise invalid(where, expected, f"{number:g}")
    return number


def check_boolean(value: object, *, where: str, name: str) -> bool:
    """Check a switch.

    Parameters
    ----------
    value : object
    where, name : str
        Who asks, and for which argument.

    Returns
    -------
    bool

    Examples
    --------
    >>> check_boolean(True, where="LinV", name="refine")
    True
    """
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise invalid_type(where, f"{name} must be True or False", _describe(value))


def check_choice(value: object, *, where: str, name: str, choices: Sequence[str]) -> str:
    """Check a word that must be one of a few.

    Parameters
    ----------
    value : object
    where, name : str
        Who asks, and for which argument.
    choices : sequence of str

    Returns
    -------
    str

    Examples
    --------
    >>> check_choice("pooled", where="neighbors", name="rule", choices=("pooled", "mean_kth"))
    'pooled'
    """
    if isinstance(value, str) and value in choices:
        return str(value)
    expected = f"{name} must be one of {', '.join(map(repr, choices))}"
    if isinstance(value, str):
        raise invalid(where, expected, repr(value))
    raise invalid_type(where, expected, _describe(value))


def check_vectors(
    X: Any,
    *,
    where: str,
    name: str,
    n_features: int | None = None,
    min_items: int = 1,
    first_row: int = 0,
) -> NDArray[Any]:
    """Check a matrix of vectors: two-dimensional, real, finite; its dtype and memory are kept.

    Read-only, memory-mapped and non-contiguous arrays are taken as they are. Booleans become uint8, and
    an object array becomes float64 if all it holds is numbers.

    Parameters
    ----------
    X : array-like of shape (n_items, n_features)
    where, name : str
        Who asks, and for which argument.
    n_features : int, optional
        The number of features that X must have.
    min_items : int, optional
        The smallest number of items.
    first_row : int, default 0
        The number of the first row, for one block of many.

    Returns
    -------
    array of shape (n_items, n_features)
        Of an integer or floating dtype.

    Examples
    --------
    >>> check_vectors([[1, 2], [3, 4]], where="LinV.fit", name="X").shape
    (2, 2)
    """
    array = _real_matrix(X, where=where, name=name)
    n_items, width = array.shape
    if n_items < min_items:
        # scikit-learn's estimator checks look for the word n_samples.
        items = "item" if min_items == 1 else "items"
        found = f"{n_items} (n_samples = {n_items})"
        raise invalid(where, f"{name} must have at least {min_items} {items}", found)
    if width == 0:
        found = f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required"
        raise invalid(where, f"{name} must have features", found)
    if n_features is not None and width != n_features:
        asker = where.split(".")[0]
        # The second sentence is scikit-learn's own: its estimator checks look for these words.
        remedy = f"{name} has {width} features, but {asker} is expecting {n_features} features as input."
        raise invalid(where, f"{name} must have {n_features} features", str(width), remedy)
    _refuse_non_finite(array, first_row, where=where, name=name)
    return array


def random_generator(random_state: object, *, where: str) -> np.random.Generator:
    """Make the generator of a seed or of None; a Generator is used as it is, a RandomState gives one a seed.

    Parameters
    ----------
    random_state : None, int of at least 0, Generator or RandomState
    where : str
        Who asks.

    Returns
    -------
    Generator

    Examples
    --------
    >>> random_generator(0, where="LinV").integers(10, size=3)
    array([8, 6, 5])
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    if (
        isinstance(random_state, (int, np.integer))
        and not isinstance(random_state, bool)
        and random_state >= 0
    ):
        return np.random.default_rng(int(random_state))
    raise invalid(
        where,
        "random_state must be None, an integer of at least 0, a Generator or a RandomState",
        repr(random_state),
    )


def read_array(values: Any, *, where: str, expected: str) -> NDArray[Any]:
    """Make an array of any array-like, refusing by name what NumPy cannot read, such as rows of several lengths.

    Parameters
    ----------
    values : array-like
    where, expected : str
        Who asks, and what for.

    Returns
    -------
    array

    Examples
    --------
    >>> read_array([[1, 0], [1]], where="from_matrix", expected="S must be 2-d, queries by items")
    Traceback (most recent call last):
        ...
    asymhash.errors.InvalidType: from_matrix: S must be 2-d, queries by items, got a list that NumPy cannot read (...).
    """
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        found = f"a {type(values).__name__} that NumPy cannot read ({reason})"
        raise invalid_type(where, expected, found) from None


def _describe(value: object) -> str:
    """Say what came, short enough for one line."""
    text = repr(value)
    return f"{text} of type {type(value).__name__}" if len(text) <= 40 else f"a {type(value).__name__}"


def _real_matrix(X: Any, *, where: str, name: str) -> NDArray[Any]:
    expected = f"{name} must be a 2-d array of shape (n_items, n_features)"
    if scipy.sparse.issparse(X):
        raise invalid_type(where, expected, f"a sparse {type(X).__name__}", f"Use {name}.toarray().")
    if np.ma.isMaskedArray(X):
        raise invalid_type(where, expected, "a masked array", f"Use {name}.filled(value).")
    array = read_array(X, where=where, expected=expected)
    if array.ndim != 2:
        remedy = f"Reshape your data: {name}.reshape(1, -1) is one item." if array.ndim == 1 else ""
        raise invalid(where, expected, f"a {array.ndim}-d array of shape {array.shape}", remedy)
    if array.dtype.kind in "iuf":
        return array
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    if array.dtype.kind == "O":
        return _numbers_of_objects(array, where=where, name=name)
    found = f"dtype {array.dtype}"
    if array.dtype.kind == "c":
        raise invalid(where, f"{name} must hold real numbers", found, "Complex data not supported.")
    raise invalid_type(where, f"{name} must hold real numbers", found)


def _numbers_of_objects(array: NDArray[Any], *, where: str, name: str) -> NDArray[np.float64]:
    expected = f"{name} must hold real numbers"
    remedy = f"Convert {name} to float32 or float64 first."
    if any(isinstance(value, (str, bytes)) for value in array.flat):
        raise invalid_type(where, expected, "an object array with text in it", remedy)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise invalid_type(where, expected, f"an object array ({error})", remedy) from None


def _refuse_non_finite(array: NDArray[Any], first_row: int, *, where: str, name: str) -> None:
    if array.dtype.kind != "f":
        return
    rows = max(1, _BLOCK_ELEMENTS // array.shape[1])
    for first in range(0, len(array), rows):
        block = array[first : first + rows]
        finite = _is_finite(block)
        if not finite.all():
            raise _non_finite(block, first_row + first, finite, where=where, name=name)
        if array.dtype.itemsize >= 8 and max(-block.min(initial=0.0), block.max(initial=0.0)) > _LARGEST:
            expected = f"{name} must hold numbers of at most {_LARGEST:g} in size"
            raise invalid(where, expected, f"{np.abs(block).max():g}", f"Scale {name} down.")


def _is_finite(block: NDArray[Any]) -> NDArray[np.bool_]:
    if block.dtype == np.float16 and block.dtype.isnative:
        # By the bits of the exponent: NumPy takes float16 one by one, 15 times slower.
        by_exponent: NDArray[np.bool_] = (block.view(np.uint16) & 0x7C00) != 0x7C00
        return by_exponent
    finite: NDArray[np.bool_] = np.isfinite(block)
    return finite


def _non_finite(
    block: NDArray[Any], first: int, finite: NDArray[np.bool_], *, where: str, name: str
) -> AsymhashError:
    row, column = divmod(int(np.flatnonzero(~finite)[0]), block.shape[1])
    kind = "NaN" if np.isnan(block[row, column]) else "inf"
    return invalid(
        where,
        f"{name} must be finite",
        f"{kind} in row {first + row}, column {column}",
        "Remove or fill such rows first.",
    )
