"""The table of methods tells the truth about the classes it names."""

from __future__ import annotations

import pytest

import asymhash
from asymhash.errors import InvalidArgument
from asymhash.methods import METHODS, find_method


@pytest.mark.parametrize("name", METHODS)
def test_rows_name_public_classes(name: str) -> None:
    method = METHODS[name]
    hasher = method.create(5, random_state=3, pca=None)
    assert ("pca" in hasher.get_params()) == method.takes_pca
    assert type(hasher) is getattr(asymhash, method.class_name)
    assert hasher.get_params()["n_bits"] == 5
    assert hasher.get_params()["random_state"] == 3
    assert method.name == name
    assert method.longest(16, n_features=10) == (10 if method.at_most_n_features else 16)


def test_unknown_names_and_parameters() -> None:
    with pytest.raises(InvalidArgument, match=r"the name must be one of lin-v, lin-lin, .* got 'lin'"):
        find_method("lin")
    with pytest.raises(
        InvalidArgument, match=r"method lsh: parameters must be among n_bits, pca, random_state, got colour\."
    ):
        find_method("lsh").create(5, random_state=0, colour="red")
