"""Packed binary codes of many items, the value that everything else here passes around.

Bit i of a code is bit i % 64 of word i // 64 (least significant first), +1 is a set bit, and the bits of
the last word beyond `n_bits` are zero; docs/decisions/001 tells why.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from mmap import mmap
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from asymhash.checks import check_choice, check_integer, read_array
from asymhash.errors import invalid, invalid_type
from asymhash.kernels import MAX_WORDS, WORD_BITS

__all__ = ["MAX_BITS", "BinaryCodes", "BitOrder"]

MAX_BITS = MAX_WORDS * WORD_BITS

BitOrder = Literal["little", "big"]
_ORDERS: tuple[BitOrder, ...] = ("little", "big")

# Byte b with its bits in the other order.
_REVERSED = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)[:, ::-1], axis=1)[:, 0]


@final
@dataclass(frozen=True, eq=False, repr=False, slots=True)
class BinaryCodes:
    """Binary codes of many items; make them with `from_signs`, `from_bools` or `from_bytes`.

    Parameters
    ----------
    words : uint64 array of shape (n, ceil(n_bits / 64))
        Bit i of a code is bit i % 64 of word i // 64; unused bits are zero. An array is kept where neither it nor
        what it is a view of can be written, and copied otherwise.
    n_bits : int
        Length of each code, from 1 to 1024.

    Attributes
    ----------
    words : uint64 array of shape (n, ceil(n_bits / 64)), read-only
    n_bits : int

    Examples
    --------
    >>> codes = BinaryCodes.from_signs([[1, -1, 1], [-1, -1, 1]])
    >>> codes
    BinaryCodes(2 items, 3 bits)
    >>> codes.words
    array([[5],
           [4]], dtype=uint64)
    """

    words: NDArray[np.uint64]
    n_bits: int

    def __post_init__(self) -> None:
        n_bits = _check_n_bits(self.n_bits, where="BinaryCodes")
        words = _check_words(self.words, n_bits)
        if _can_be_written(words):
            words = words.copy()
            words.flags.writeable = False
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "n_bits", n_bits)

    @classmethod
    def from_signs(cls, matrix: ArrayLike) -> BinaryCodes:
        """Pack a matrix of +1 and -1.

        Parameters
        ----------
        matrix : array-like of shape (n, n_bits)
            Of any real dtype, with no other values than +1 and -1.

        Returns
        -------
        BinaryCodes

        Examples
        --------
        >>> BinaryCodes.from_signs([[1.0, -1.0]]).to_bools()
        array([[ True, False]])
        """
        where = "BinaryCodes.from_signs"
        signs = _check_matrix(matrix, where=where)
        expected = "matrix must hold +1 and -1 only"
        if signs.dtype.kind not in "iuf":
            remedy = "For booleans there is from_bools." if signs.dtype == np.bool_ else ""
            raise invalid_type(where, expected, f"dtype {signs.dtype}", remedy)
        bools = signs == 1
        wrong = ~bools & (signs != -1)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise invalid(where, expected, f"{signs[row, column]:g} in row {row}, column {column}")
        return cls._from_checked_bools(bools)

    @classmethod
    def from_bools(cls, matrix: ArrayLike) -> BinaryCodes:
        """Pack a matrix of booleans; True is a set bit.

        Parameters
        ----------
        matrix : array-like of bool, of shape (n, n_bits)

        Returns
        -------
        BinaryCodes

        Examples
        --------
        >>> BinaryCodes.from_bools([[True, False]]).to_signs()
        array([[ 1, -1]], dtype=int8)
        """
        where = "BinaryCodes.from_bools"
        bools = _check_matrix(matrix, where=where)
        if bools.dtype != np.bool_:
            raise invalid_type(where, "matrix must be of bool", f"dtype {bools.dtype}")
        return cls._from_checked_bools(bools)

    @classmethod
    def from_bytes(cls, packed: ArrayLike, n_bits: int, order: BitOrder = "little") -> BinaryCodes:
        """Take codes that were packed into bytes, here or by another program.

        Parameters
        ----------
        packed : uint8 array of shape (n, ceil(n_bits / 8))
            Unused bits of the last byte must be zero.
        n_bits : int
        order : {"little", "big"}
            Whether the first bit is the least ("little": FAISS, Milvus) or the most significant one of the
            first byte ("big": np.packbits, pgvector).

        Returns
        -------
        BinaryCodes

        Examples
        --------
        >>> packed = np.array([[0b10000000]], np.uint8)
        >>> BinaryCodes.from_bytes(packed, 3, order="big").to_signs()
        array([[ 1, -1, -1]], dtype=int8)
        """
        where = "BinaryCodes.from_bytes"
        n_bits = _check_n_bits(n_bits, where=where)
        check_choice(order, where=where, name="order", choices=_ORDERS)
        n_octets = -(-n_bits // 8)
        expected = f"packed must be a uint8 array of shape (n, {n_octets}) for {n_bits} bits"
        octets = read_array(packed, where=where, expected=expected)
        if octets.dtype != np.uint8:
            raise invalid_type(where, expected, f"dtype {octets.dtype}")
        if octets.ndim != 2 or octets.shape[1] != n_octets:
            raise invalid(where, expected, f"shape {octets.shape}")
        if order == "big":
            octets = _REVERSED[octets]
        if n_bits % 8:
            unused = octets[:, -1] >> (n_bits % 8)
            _refuse_unused_bits(unused, n_bits, where=where, remedy="Check n_bits and order.")
        return cls._from_checked_bytes(octets, n_bits)

    @classmethod
    def concatenate(cls, parts: Iterable[BinaryCodes]) -> BinaryCodes:
        """Put codes of equal length one after another.

        Parameters
        ----------
        parts : iterable of BinaryCodes
            At least one.

        Returns
        -------
        BinaryCodes

        Examples
        --------
        >>> codes = BinaryCodes.from_signs([[1, -1]])
        >>> BinaryCodes.concatenate([codes, codes])
        BinaryCodes(2 items, 2 bits)
        """
        where = "BinaryCodes.concatenate"
        codes = list(parts)
        if not codes:
            raise invalid(where, "parts must hold at least one BinaryCodes", "none")
        for part in codes:
            if not isinstance(part, BinaryCodes):
                raise invalid_type(where, "parts must hold BinaryCodes", f"a {type(part).__name__}")
        lengths = sorted({part.n_bits for part in codes})
        if len(lengths) > 1:
            found = " and ".join(map(str, lengths))
            raise invalid(where, "all codes must have the same number of bits", found)
        return cls._frozen(np.concatenate([part.words for part in codes]), lengths[0])

    def to_signs(self, dtype: DTypeLike = np.int8) -> NDArray[Any]:
        """Unpack into +1 and -1.

        Parameters
        ----------
        dtype : dtype, default=int8
            A signed integer or floating type.

        Returns
        -------
        array of shape (n, n_bits)

        Examples
        --------
        >>> BinaryCodes.from_bools([[True, False]]).to_signs(np.float32)
        array([[ 1., -1.]], dtype=float32)
        """
        kind = np.dtype(dtype)
        if kind.kind not in "if":
            expected = "dtype must be a signed integer or floating type"
            raise invalid_type("BinaryCodes.to_signs", expected, str(kind))
        signs = self.to_bools().astype(kind)
        signs *= 2
        signs -= 1
        return signs

    def to_bools(self) -> NDArray[np.bool_]:
        """Unpack into booleans.

        Returns
        -------
        bool array of shape (n, n_bits)

        Examples
        --------
        >>> BinaryCodes.from_signs([[1, -1]]).to_bools()
        array([[ True, False]])
        """
        bits = np.unpackbits(self._octets(), axis=1, count=self.n_bits, bitorder="little")
        return bits.view(np.bool_)

    def to_bytes(self, order: BitOrder = "little") -> NDArray[np.uint8]:
        """Pack into bytes, for other programs.

        Parameters
        ----------
        order : {"little", "big"}
            Where the first bit goes; see `from_bytes`.

        Returns
        -------
        uint8 array of shape (n, ceil(n_bits / 8))
            Unused bits of the last byte are zero.

        Examples
        --------
        >>> BinaryCodes.from_signs([[1, -1, -1]]).to_bytes(order="big")
        array([[128]], dtype=uint8)
        """
        check_choice(order, where="BinaryCodes.to_bytes", name="order", choices=_ORDERS)
        octets = self._octets()[:, : -(-self.n_bits // 8)]
        return _REVERSED[octets] if order == "big" else octets.copy()

    def first_bits(self, n_bits: int) -> BinaryCodes:
        """Keep the first bits of every code.

        Parameters
        ----------
        n_bits : int
            From 1 to the present length.

        Returns
        -------
        BinaryCodes

        Examples
        --------
        >>> BinaryCodes.from_signs([[1, -1, 1]]).first_bits(2)
        BinaryCodes(1 item, 2 bits)
        """
        where = "BinaryCodes.first_bits"
        n_bits = check_integer(n_bits, where=where, name="n_bits", low=1, high=self.n_bits)
        words = self.words[:, : _words_for(n_bits)].copy()
        words[:, -1] &= _last_word_mask(n_bits)
        return self._frozen(words, n_bits)

    def __len__(self) -> int:
        return int(self.words.shape[0])

    def __getitem__(self, which: int | slice | ArrayLike) -> BinaryCodes:
        if isinstance(which, (int, np.integer)) and not isinstance(which, bool):
            return self._frozen(self.words[which][None, :], self.n_bits)
        if isinstance(which, slice):
            return self._frozen(self.words[which], self.n_bits)
        where = "BinaryCodes[...]"
        expected = "the index must be an integer, a slice, or a 1-d array of integers or booleans"
        if isinstance(which, tuple):
            raise invalid_type(where, expected, "a tuple")
        index = read_array(which, where=where, expected=expected)
        if index.ndim != 1:
            raise invalid(where, expected, f"an index of shape {index.shape}")
        if index.size == 0 and index.dtype.kind == "f":
            index = index.astype(np.intp)  # an empty list
        if index.dtype.kind not in "iub":
            raise invalid_type(where, expected, f"dtype {index.dtype}")
        return self._frozen(self.words[index], self.n_bits)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BinaryCodes):
            return NotImplemented
        return self.n_bits == other.n_bits and np.array_equal(self.words, other.words)

    def __repr__(self) -> str:
        n = len(self)
        items = "item" if n == 1 else "items"
        return f"BinaryCodes({n} {items}, {self.n_bits} {'bit' if self.n_bits == 1 else 'bits'})"

    def __reduce__(self) -> tuple[type[BinaryCodes], tuple[NDArray[np.uint64], int]]:
        # Through the constructor: NumPy's pickle forgets that an array is read-only.
        return BinaryCodes, (self.words, self.n_bits)

    @classmethod
    def _frozen(cls, words: NDArray[np.uint64], n_bits: int) -> BinaryCodes:
        """Wrap words that nobody else can write to, so that they need no copy."""
        words = np.ascontiguousarray(words)
        words.flags.writeable = False
        return cls(words, n_bits)

    @classmethod
    def _from_checked_bools(cls, bools: NDArray[np.bool_]) -> BinaryCodes:
        return cls._from_checked_bytes(np.packbits(bools, axis=1, bitorder="little"), bools.shape[1])

    @classmethod
    def _from_checked_bytes(cls, octets: NDArray[np.uint8], n_bits: int) -> BinaryCodes:
        padded = np.zeros((len(octets), _words_for(n_bits) * 8), dtype=np.uint8)
        padded[:, : octets.shape[1]] = octets
        padded.flags.writeable = False  # before there is a view of it, so that nothing needs to be copied
        return cls._frozen(padded.view("<u8").astype(np.uint64, copy=False), n_bits)

    def _octets(self) -> NDArray[np.uint8]:
        """All bytes of the words, the first bit being the least significant one of the first byte."""
        return np.ascontiguousarray(self.words.astype("<u8", copy=False)).view(np.uint8)


def _words_for(n_bits: int) -> int:
    return -(-n_bits // WORD_BITS)


def _last_word_mask(n_bits: int) -> np.uint64:
    """Say which bits of the last word are in use."""
    return np.uint64((1 << ((n_bits - 1) % WORD_BITS + 1)) - 1)


def _check_n_bits(n_bits: object, *, where: str) -> int:
    return check_integer(n_bits, where=where, name="n_bits", low=1, high=MAX_BITS)


def _check_words(words: object, n_bits: int) -> NDArray[np.uint64]:
    where = "BinaryCodes"
    n_words = _words_for(n_bits)
    expected = f"words must be a uint64 array of shape (n, {n_words}) for {n_bits} bits"
    if not isinstance(words, np.ndarray):
        raise invalid_type(where, expected, f"a {type(words).__name__}")
    if words.dtype != np.uint64:
        raise invalid_type(where, expected, f"dtype {words.dtype}")
    if words.ndim != 2 or words.shape[1] != n_words:
        raise invalid(where, expected, f"shape {words.shape}")
    # np.asarray drops the subclass of a memory map, not the map.
    words = np.ascontiguousarray(np.asarray(words))
    _refuse_unused_bits(words[:, -1] & ~_last_word_mask(n_bits), n_bits, where=where)
    return words


def _can_be_written(array: NDArray[Any]) -> bool:
    """Tell whether somebody can write to the array's memory, through it or through what it is a view of."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return True
        owner = owner.base
    if isinstance(owner, mmap):
        return not memoryview(owner).readonly
    return not (owner is None or isinstance(owner, bytes))  # of anything else nobody knows


def _refuse_unused_bits(unused: NDArray[Any], n_bits: int, *, where: str, remedy: str = "") -> None:
    if unused.any():
        item = int(np.flatnonzero(unused)[0])
        raise invalid(where, f"bits beyond n_bits={n_bits} must be zero", f"others in item {item}", remedy)


def _check_matrix(matrix: ArrayLike, *, where: str) -> NDArray[Any]:
    expected = f"matrix must be 2-d with 1 to {MAX_BITS} columns"
    array = read_array(matrix, where=where, expected=expected)
    if array.ndim != 2 or not 1 <= array.shape[1] <= MAX_BITS:
        raise invalid(where, expected, f"shape {array.shape}")
    return array
