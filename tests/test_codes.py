"""BinaryCodes: layout of the words, the ways in and out, and what is refused."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from asymhash.codes import BinaryCodes
from asymhash.errors import InvalidArgument, InvalidType

LENGTHS = [1, 7, 8, 9, 63, 64, 65, 127, 128, 130, 1023, 1024]


def random_signs(n_items, n_bits, seed=0):
    return np.random.default_rng(seed).choice(np.array([-1, 1], dtype=np.int8), size=(n_items, n_bits))


def words_by_hand(signs):
    """Build the words bit by bit from what DESIGN says of them."""
    n_bits = signs.shape[1]
    rows = []
    for row in signs.tolist():
        words = [0] * -(-n_bits // 64)
        for i, sign in enumerate(row):
            if sign == 1:
                words[i // 64] |= 1 << (i % 64)
        rows.append(words)
    return np.array(rows, dtype=np.uint64)


@pytest.mark.parametrize("n_bits", LENGTHS)
def test_bit_i_of_a_code_is_bit_i_of_its_words(n_bits):
    signs = random_signs(11, n_bits)
    codes = BinaryCodes.from_signs(signs)
    np.testing.assert_array_equal(codes.words, words_by_hand(signs))
    assert codes.words.dtype == np.uint64
    assert (len(codes), codes.n_bits) == (11, n_bits)


@pytest.mark.parametrize("n_bits", LENGTHS)
def test_every_way_out_leads_back_in(n_bits):
    signs = random_signs(6, n_bits)
    codes = BinaryCodes.from_signs(signs)
    np.testing.assert_array_equal(codes.to_signs(), signs)
    np.testing.assert_array_equal(codes.to_bools(), signs == 1)
    assert BinaryCodes.from_bools(codes.to_bools()) == codes
    assert BinaryCodes(codes.words, n_bits) == codes
    for order in ("little", "big"):
        packed = codes.to_bytes(order)
        np.testing.assert_array_equal(packed, np.packbits(signs == 1, axis=1, bitorder=order))
        assert BinaryCodes.from_bytes(packed, n_bits, order) == codes


def test_both_byte_orders_are_those_of_the_stores():
    signs = np.full((1, 10), -1)
    signs[0, [0, 9]] = 1
    codes = BinaryCodes.from_signs(signs)
    assert codes.to_bytes("little").tolist() == [[0x01, 0x02]]  # FAISS, Milvus, sqlite-vec
    assert codes.to_bytes("big").tolist() == [[0x80, 0x40]]  # np.packbits, pgvector, DuckDB


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float16, np.float32, np.float64])
def test_signs_of_every_real_dtype_are_taken_and_given(dtype):
    signs = random_signs(4, 70)
    codes = BinaryCodes.from_signs(signs.astype(dtype))
    assert codes == BinaryCodes.from_signs(signs)
    assert codes.to_signs(dtype).dtype == dtype
    np.testing.assert_array_equal(codes.to_signs(dtype), signs)


def test_lists_and_non_contiguous_matrices_are_taken():
    signs = random_signs(8, 20)
    codes = BinaryCodes.from_signs(signs)
    assert BinaryCodes.from_signs(signs.tolist()) == codes
    assert BinaryCodes.from_signs(np.asfortranarray(signs)) == codes
    assert BinaryCodes.from_signs(signs[:, ::-1]).to_signs().tolist() == signs[:, ::-1].tolist()
    assert BinaryCodes.from_bytes(codes.to_bytes()[::2], 20) == codes[::2]


def test_no_items_are_codes_too():
    codes = BinaryCodes.from_signs(np.empty((0, 70)))
    assert (len(codes), codes.n_bits, codes.words.shape) == (0, 70, (0, 2))
    assert codes.to_signs().shape == (0, 70)
    assert codes.to_bytes("big").shape == (0, 9)
    assert codes == BinaryCodes.from_bytes(np.empty((0, 9), np.uint8), 70)
    assert len(codes[[]]) == 0
    assert repr(codes) == "BinaryCodes(0 items, 70 bits)"


@pytest.mark.parametrize(
    "index",
    [
        slice(None),
        slice(2, 7),
        slice(None, None, -2),
        [3, 3, 0],
        np.array([-1, 2]),
        np.arange(10) % 3 == 0,
        [],
    ],
    ids=str,
)
def test_indexing_takes_the_items_that_numpy_takes(index):
    signs = random_signs(10, 65)
    codes = BinaryCodes.from_signs(signs)
    taken = signs[index] if len(np.atleast_1d(index)) else signs[:0]
    np.testing.assert_array_equal(codes[index].to_signs(), taken)
    assert not codes[index].words.flags.writeable


def test_an_integer_takes_codes_of_one_item():
    codes = BinaryCodes.from_signs(random_signs(5, 9))
    assert codes[np.int64(-1)] == codes[4:5]
    assert [len(code) for code in codes] == [1] * 5
    with pytest.raises(IndexError):
        codes[5]


@pytest.mark.parametrize(
    ("index", "kind", "found"),
    [
        ([0.5], InvalidType, "dtype float64"),
        ("a", InvalidArgument, "an index of shape ()"),
        (True, InvalidArgument, "an index of shape ()"),
        ([[0]], InvalidArgument, "an index of shape (1, 1)"),
        ((slice(None), 0), InvalidType, "a tuple"),
    ],
)
def test_other_indices_are_refused(index, kind, found):
    codes = BinaryCodes.from_signs(random_signs(5, 9))
    with pytest.raises(kind) as error:
        codes[index]
    expected = "the index must be an integer, a slice, or a 1-d array of integers or booleans"
    assert str(error.value) == f"BinaryCodes[...]: {expected}, got {found}."


@pytest.mark.parametrize("n_bits", LENGTHS)
def test_first_bits_are_those_of_the_shorter_code(n_bits):
    signs = random_signs(6, 1024)
    assert BinaryCodes.from_signs(signs).first_bits(n_bits) == BinaryCodes.from_signs(signs[:, :n_bits])


def test_first_bits_refuses_more_bits_than_there_are():
    with pytest.raises(InvalidArgument) as error:
        BinaryCodes.from_signs([[1, 1]]).first_bits(3)
    assert str(error.value) == "BinaryCodes.first_bits: n_bits must be an integer from 1 to 2, got 3."


def test_concatenate_keeps_order():
    signs = random_signs(9, 100)
    codes = BinaryCodes.from_signs(signs)
    assert BinaryCodes.concatenate([codes[:2], codes[2:2], codes[2:]]) == codes
    assert (
        BinaryCodes.concatenate(part for part in (codes[4:], codes[:4])) == codes[[4, 5, 6, 7, 8, 0, 1, 2, 3]]
    )


@pytest.mark.parametrize(
    ("parts", "kind", "message"),
    [
        ([], InvalidArgument, "parts must hold at least one BinaryCodes, got none."),
        ([np.ones((1, 3))], InvalidType, "parts must hold BinaryCodes, got a ndarray."),
        (
            [BinaryCodes.from_signs(random_signs(1, n)) for n in (65, 64, 65)],
            InvalidArgument,
            "all codes must have the same number of bits, got 64 and 65.",
        ),
    ],
)
def test_concatenate_refuses(parts, kind, message):
    with pytest.raises(kind) as error:
        BinaryCodes.concatenate(parts)
    assert str(error.value) == f"BinaryCodes.concatenate: {message}"


def test_equality_looks_at_bits_and_length():
    codes = BinaryCodes.from_signs([[1, -1, 1]])
    assert codes == BinaryCodes.from_signs([[1.0, -1.0, 1.0]])
    assert codes != BinaryCodes.from_signs([[1, -1, -1]])
    assert codes != BinaryCodes.from_signs([[1, -1, 1, -1]])  # the same word
    assert codes != BinaryCodes.from_signs([[1, -1, 1]] * 2)
    assert codes != "codes"
    with pytest.raises(TypeError, match="unhashable"):
        hash(codes)


def test_codes_cannot_be_changed():
    words = np.array([[5]], dtype=np.uint64)
    codes = BinaryCodes(words, 3)
    words[0, 0] = 0
    assert codes.words.tolist() == [[5]]
    with pytest.raises(ValueError, match="read-only"):
        codes.words[0, 0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        codes.n_bits = 4


def test_what_comes_out_can_be_written_without_changing_the_codes():
    codes = BinaryCodes.from_signs(random_signs(3, 64))
    again = BinaryCodes(codes.words.copy(), 64)
    for out in (codes.to_bytes(), codes.to_bytes("big"), codes.to_bools(), codes.to_signs()):
        out[...] = 0
    assert codes == again


def test_read_only_words_are_not_copied(tmp_path):
    codes = BinaryCodes.from_signs(random_signs(3, 64))
    assert np.shares_memory(BinaryCodes(codes.words, 64).words, codes.words)
    for part in (codes[1:], codes[1]):
        assert np.shares_memory(part.words, codes.words)
    np.save(tmp_path / "words.npy", codes.words)
    mapped = np.load(tmp_path / "words.npy", mmap_mode="r")
    of_bytes = np.frombuffer(codes.words.tobytes(), dtype=np.uint64).reshape(3, 1)
    for words in (mapped, mapped[1:], of_bytes):
        assert np.shares_memory(BinaryCodes(words, 64).words, words)


def test_words_in_a_file_that_can_be_written_are_copied(tmp_path):
    np.save(tmp_path / "words.npy", np.array([[5], [6]], dtype=np.uint64))
    mapped = np.load(tmp_path / "words.npy", mmap_mode="r+")
    codes = BinaryCodes(read_only_view(mapped), 3)
    mapped[:] = 0
    assert codes.words.tolist() == [[5], [6]]


def test_codes_that_are_made_here_are_copied_once():
    """Packed words are a view of bytes: nobody can write to those either."""
    for codes in (
        BinaryCodes.from_signs(random_signs(3, 64)),
        BinaryCodes.from_bytes(np.ones((3, 8), np.uint8), 64),
    ):
        owner = codes.words
        while owner is not None:
            assert not owner.flags.writeable
            last, owner = owner, owner.base
        assert last.nbytes == codes.words.nbytes


def read_only_view(words):
    view = words[:]
    view.flags.writeable = False
    return view


@pytest.mark.parametrize(
    "view",
    [
        read_only_view,
        lambda words: read_only_view(words)[:, :],
        lambda words: np.frombuffer(memoryview(words).toreadonly(), dtype=np.uint64).reshape(-1, 1),
        lambda words: np.broadcast_to(words, words.shape),
    ],
    ids=["view", "view of a view", "buffer", "broadcast"],
)
def test_a_read_only_view_of_what_can_be_written_is_copied(view):
    words = np.array([[5], [6]], dtype=np.uint64)
    seen = view(words)
    assert not seen.flags.writeable
    codes = BinaryCodes(seen, 3)
    words[:] = 0
    assert codes.words.tolist() == [[5], [6]]


def test_copies_and_pickles_are_equal_and_read_only():
    codes = BinaryCodes.from_signs(random_signs(3, 100))
    for other in (pickle.loads(pickle.dumps(codes)), copy.deepcopy(codes), copy.copy(codes)):
        assert other == codes
        assert not other.words.flags.writeable


def test_repr_tells_size():
    assert repr(BinaryCodes.from_signs(random_signs(1000, 16))) == "BinaryCodes(1000 items, 16 bits)"
    assert repr(BinaryCodes.from_signs([[1]])) == "BinaryCodes(1 item, 1 bit)"


U64, U8 = np.uint64, np.uint8


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (
            lambda: BinaryCodes(np.zeros((2, 1), U64), 0),
            InvalidArgument,
            "BinaryCodes: n_bits must be an integer from 1 to 1024, got 0.",
        ),
        (
            lambda: BinaryCodes(np.zeros((2, 17), U64), 1025),
            InvalidArgument,
            "BinaryCodes: n_bits must be an integer from 1 to 1024, got 1025.",
        ),
        (
            lambda: BinaryCodes(np.zeros((2, 1), U64), 65),
            InvalidArgument,
            "BinaryCodes: words must be a uint64 array of shape (n, 2) for 65 bits, got shape (2, 1).",
        ),
        (
            lambda: BinaryCodes(np.zeros((2, 1), np.int64), 5),
            InvalidType,
            "BinaryCodes: words must be a uint64 array of shape (n, 1) for 5 bits, got dtype int64.",
        ),
        (
            lambda: BinaryCodes([[1]], 5),
            InvalidType,
            "BinaryCodes: words must be a uint64 array of shape (n, 1) for 5 bits, got a list.",
        ),
        (
            lambda: BinaryCodes(np.array([[1], [32]], U64), 5),
            InvalidArgument,
            "BinaryCodes: bits beyond n_bits=5 must be zero, got others in item 1.",
        ),
        (
            lambda: BinaryCodes.from_signs([[1, 0]]),
            InvalidArgument,
            "BinaryCodes.from_signs: matrix must hold +1 and -1 only, got 0 in row 0, column 1.",
        ),
        (
            lambda: BinaryCodes.from_signs([[1.0, -1.0], [float("nan"), 1.0]]),
            InvalidArgument,
            "BinaryCodes.from_signs: matrix must hold +1 and -1 only, got nan in row 1, column 0.",
        ),
        (
            lambda: BinaryCodes.from_signs([[True, False]]),
            InvalidType,
            "BinaryCodes.from_signs: matrix must hold +1 and -1 only, got dtype bool. "
            "For booleans there is from_bools.",
        ),
        (
            lambda: BinaryCodes.from_signs([[1j]]),
            InvalidType,
            "BinaryCodes.from_signs: matrix must hold +1 and -1 only, got dtype complex128.",
        ),
        (
            lambda: BinaryCodes.from_signs([1, -1]),
            InvalidArgument,
            "BinaryCodes.from_signs: matrix must be 2-d with 1 to 1024 columns, got shape (2,).",
        ),
        (
            lambda: BinaryCodes.from_bools(np.zeros((3, 0), bool)),
            InvalidArgument,
            "BinaryCodes.from_bools: matrix must be 2-d with 1 to 1024 columns, got shape (3, 0).",
        ),
        (
            lambda: BinaryCodes.from_bools(np.zeros((3, 1025), bool)),
            InvalidArgument,
            "BinaryCodes.from_bools: matrix must be 2-d with 1 to 1024 columns, got shape (3, 1025).",
        ),
        (
            lambda: BinaryCodes.from_bools([[0, 1]]),
            InvalidType,
            "BinaryCodes.from_bools: matrix must be of bool, got dtype int64.",
        ),
        (
            lambda: BinaryCodes.from_bytes(np.zeros((2, 2), U8), 17),
            InvalidArgument,
            "BinaryCodes.from_bytes: packed must be a uint8 array of shape (n, 3) for 17 bits, "
            "got shape (2, 2).",
        ),
        (
            lambda: BinaryCodes.from_bytes(np.zeros((2, 2)), 16),
            InvalidType,
            "BinaryCodes.from_bytes: packed must be a uint8 array of shape (n, 2) for 16 bits, "
            "got dtype float64.",
        ),
        (
            lambda: BinaryCodes.from_bytes(np.array([[0b1000]], U8), 3),
            InvalidArgument,
            "BinaryCodes.from_bytes: bits beyond n_bits=3 must be zero, got others in item 0. "
            "Check n_bits and order.",
        ),
        (
            lambda: BinaryCodes.from_bytes(np.array([[0], [0b00010000]], U8), 3, "big"),
            InvalidArgument,
            "BinaryCodes.from_bytes: bits beyond n_bits=3 must be zero, got others in item 1. "
            "Check n_bits and order.",
        ),
        (
            lambda: BinaryCodes.from_bytes(np.zeros((2, 2), U8), 16, "middle"),
            InvalidArgument,
            "BinaryCodes.from_bytes: order must be one of 'little', 'big', got 'middle'.",
        ),
        (
            lambda: BinaryCodes.from_signs([[1]]).to_bytes("middle"),
            InvalidArgument,
            "BinaryCodes.to_bytes: order must be one of 'little', 'big', got 'middle'.",
        ),
        (
            lambda: BinaryCodes.from_signs([[1]]).to_signs(np.uint8),
            InvalidType,
            "BinaryCodes.to_signs: dtype must be a signed integer or floating type, got uint8.",
        ),
    ],
)
def test_wrong_input_is_refused_by_name(make, kind, message):
    with pytest.raises(kind) as error:
        make()
    assert str(error.value) == message
