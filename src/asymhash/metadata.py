"""JSON values that nobody can change: what a frozen model tells of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from asymhash.errors import invalid_type

__all__ = ["frozen_metadata"]


class _ReadOnly(dict[str, Any]):
    """A dict, as `json` knows no other mapping, that refuses to be changed."""

    def _refuse(self, *arguments: object, **options: object) -> NoReturn:
        raise invalid_type("metadata", "it must stay as it is", "a change", "Change a copy: dict(metadata).")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[_ReadOnly], tuple[dict[str, Any]]]:
        return _ReadOnly, (dict(self),)  # else copies would be filled item by item


def frozen_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Copy metadata so that nobody can change them, at any depth; JSON writes them as before.

    Parameters
    ----------
    metadata : mapping of str to JSON values

    Returns
    -------
    dict that is read-only, with tuples for lists

    Examples
    --------
    >>> frozen_metadata({"shape": [2, 3]})["shape"]
    (2, 3)
    """
    return _ReadOnly({name: _frozen_value(value) for name, value in metadata.items()})


def _frozen_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return frozen_metadata(value)
    return tuple(map(_frozen_value, value)) if isinstance(value, (list, tuple)) else value
