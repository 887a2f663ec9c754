"""Exact identities of codes and of the Hamming distance, for codes of any length."""

import hypothesis.extra.numpy as arrays
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from asymhash import kernels
from asymhash.codes import BinaryCodes

N_BITS = st.integers(1, 1024)


@st.composite
def bools(draw, n_bits=N_BITS, max_items=6):
    shape = (draw(st.integers(1, max_items)), draw(n_bits))
    packed = draw(arrays.arrays(np.uint8, (shape[0], -(-shape[1] // 8))))
    return np.unpackbits(packed, axis=1, count=shape[1]).astype(bool)


@given(bools())
def test_unpack_of_pack_is_the_same(matrix):
    codes = BinaryCodes.from_bools(matrix)
    assert np.array_equal(codes.to_bools(), matrix)
    assert np.array_equal(codes.to_signs(), np.where(matrix, 1, -1))
    assert BinaryCodes.from_signs(codes.to_signs()) == codes


@given(bools(), st.sampled_from(["little", "big"]))
def test_bytes_are_those_of_numpy(matrix, order):
    codes = BinaryCodes.from_bools(matrix)
    packed = codes.to_bytes(order)
    assert np.array_equal(packed, np.packbits(matrix, axis=1, bitorder=order))
    assert BinaryCodes.from_bytes(packed, codes.n_bits, order) == codes


@given(bools(), st.data())
def test_first_bits_nest(matrix, data):
    codes = BinaryCodes.from_bools(matrix)
    longer = data.draw(st.integers(1, codes.n_bits))
    shorter = data.draw(st.integers(1, longer))
    assert codes.first_bits(longer).first_bits(shorter) == codes.first_bits(shorter)
    assert np.array_equal(codes.first_bits(shorter).to_bools(), matrix[:, :shorter])


@given(bools(max_items=12), st.data())
def test_concatenate_of_the_parts_is_the_whole(matrix, data):
    codes = BinaryCodes.from_bools(matrix)
    cut = data.draw(st.integers(0, len(codes)))
    assert BinaryCodes.concatenate([codes[:cut], codes[cut:]]) == codes


@given(bools())
def test_distances_are_those_of_the_inner_products(matrix):
    codes = BinaryCodes.from_bools(matrix)
    signs = codes.to_signs(np.int64)
    distances = kernels.hamming_distances(codes.words, codes.words).astype(np.int64)
    assert np.array_equal(distances, (codes.n_bits - signs @ signs.T) // 2)


@given(bools())
def test_distances_are_a_metric(matrix):
    codes = BinaryCodes.from_bools(matrix)
    distances = kernels.hamming_distances(codes.words, codes.words).astype(np.int64)
    assert np.array_equal(distances, distances.T)
    assert not np.diag(distances).any()
    assert (distances[:, None, :] <= distances[:, :, None] + distances[None, :, :]).all()


@given(bools(max_items=12))
def test_counts_are_the_histogram_of_the_distances(matrix):
    codes = BinaryCodes.from_bools(matrix)
    distances = kernels.hamming_distances(codes.words, codes.words)
    counts = kernels.distance_counts(codes.words, codes.words, codes.n_bits)
    assert counts.shape == (len(codes), codes.n_bits + 1)
    for row, expected in zip(counts, distances, strict=True):
        assert np.array_equal(row, np.bincount(expected, minlength=codes.n_bits + 1))
