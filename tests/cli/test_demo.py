"""The demo, at a size that a test can afford."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from asymhash import BinaryCodes, datasets
from asymhash.cli.demo import DemoResult, DemoSize, print_summaries, run_demo
from asymhash.cli.pictures import _COLOURS, _MARKERS, spread_out
from asymhash.cli.search import describe, find_nearest_digits
from asymhash.cli.tables import CAPPED
from asymhash.experiments import KeptCodes
from asymhash.methods import METHODS

SIZE = DemoSize(sources=("digits", "uniform10"), bits=(4, 12), n_train=150, max_queries=80, average=15)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, DemoResult]:
    folder = tmp_path_factory.mktemp("demo")
    return folder, run_demo(folder, SIZE, jobs=1, quiet=True)


def test_demo_writes_two_pictures(shown: tuple[Path, DemoResult]) -> None:
    folder, _ = shown
    assert sorted(path.name for path in folder.iterdir()) == ["ap-against-bits.png", "search.png"]
    for path in folder.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size > 10_000


def test_every_method_has_a_colour_and_a_marker_of_its_own() -> None:
    assert len(set(_COLOURS)) == len(set(_MARKERS)) >= len(METHODS)


def test_demo_measures_every_method_on_every_set(shown: tuple[Path, DemoResult]) -> None:
    _, result = shown
    found = [(summary.source, summary.method, summary.n_bits) for summary in result.summaries]
    assert found == [
        (source, method, bits) for source in SIZE.sources for method in METHODS for bits in SIZE.bits
    ]
    assert all(0 < summary.means["step_pairs"] < 1 for summary in result.summaries)
    capped = [summary for summary in result.summaries if summary.n_bits_used != summary.n_bits]
    assert [(summary.source, summary.method, summary.n_bits_used) for summary in capped] == [
        ("uniform10", "itq", 10)
    ]


def test_demo_search_is_in_order_and_readable(shown: tuple[Path, DemoResult]) -> None:
    _, result = shown
    found = result.found
    assert len(found.ids) == 10
    assert list(zip(found.distances, found.ids, strict=True)) == sorted(
        zip(found.distances, found.ids, strict=True)
    )
    digits = datasets.load("digits")
    assert digits.labels is not None
    np.testing.assert_array_equal(found.images[0].ravel(), digits.vectors[found.ids[0]])
    np.testing.assert_array_equal(found.labels, digits.labels[found.ids])
    assert found.query_id not in found.ids
    lines = describe(found)
    assert len(lines) == 11
    assert lines[0].startswith(f"The query is a held-out {found.query_label}")


def test_search_is_the_naive_search() -> None:
    digits = datasets.load("digits")
    assert digits.labels is not None
    order = np.random.default_rng(0).permutation(len(digits.vectors))
    bits = digits.vectors[:, 10:50] > 8
    query_ids, database_ids = order[:5], order[5:300]
    codes = KeptCodes(
        BinaryCodes.from_bools(bits[query_ids]),
        BinaryCodes.from_bools(bits[database_ids]),
        query_ids,
        database_ids,
    )
    found = find_nearest_digits(codes, query=3, k=4)
    naive = sorted((int((bits[item] != bits[query_ids[3]]).sum()), int(item)) for item in database_ids)[:4]
    assert list(zip(found.distances.tolist(), found.ids.tolist(), strict=True)) == naive
    assert found.query_id == query_ids[3]
    assert found.query_label == digits.labels[query_ids[3]]
    assert describe(found)[1].startswith(f"   1. {naive[0][0]:2} of 40 bits differ: a ")


def test_demo_table_has_a_row_for_each_method(
    shown: tuple[Path, DemoResult], capsys: pytest.CaptureFixture[str]
) -> None:
    print_summaries(shown[1].summaries)
    text = capsys.readouterr().out
    for method in METHODS.values():
        assert text.count(f"\n{method.title} ") == len(SIZE.sources)
    assert text.count(CAPPED) == 1
    assert max(len(line) for line in text.splitlines()) <= 80


def test_labels_are_spread_out() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = rng.random(rng.integers(1, 9)).tolist()
        places = spread_out(values, 0.1)
        order = np.argsort(values)
        gaps = np.diff(np.asarray(places)[order])
        assert (gaps >= 0.1 - 1e-9).all()
        if (np.diff(np.sort(values)) >= 0.1).all():
            assert places == pytest.approx(values)
