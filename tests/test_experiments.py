"""Trials give the same results however they are run; short codes come from long ones where methods nest."""

from __future__ import annotations

import dataclasses

import pytest

from asymhash.errors import InvalidArgument
from asymhash.experiments import Split, Trial, run_trial, run_trials
from asymhash.methods import METHODS

SPLIT = Split("uniform10", n_train=120, max_queries=60, average=12)
FAST = {"mlh": (("recipe", "small"), ("n_epochs", 1), ("n_validation_epochs", 1), ("n_batches", 5))}


def trial_of(method, bits, **given):
    return Trial(SPLIT, method, bits, parameters=FAST.get(method, ()), **given)


def without_seconds(outcomes):
    return [[dataclasses.replace(record, seconds=0.0) for record in outcome.records] for outcome in outcomes]


def test_results_do_not_depend_on_jobs() -> None:
    trials = [trial_of(method, (4, 6), keep_codes=True) for method in METHODS]
    serial, parallel = run_trials(trials, jobs=1), run_trials(trials, jobs=2)
    assert without_seconds(serial) == without_seconds(parallel)
    assert [outcome.trial for outcome in parallel] == trials
    for one, other in zip(serial, parallel, strict=True):
        assert one.codes is not None
        assert other.codes is not None
        assert one.codes.queries == other.codes.queries
        assert one.codes.database == other.codes.database


@pytest.mark.parametrize("method", METHODS)
def test_short_codes_alone_and_with_long_ones(method: str) -> None:
    both = run_trial(trial_of(method, (4, 6))).records
    alone = run_trial(trial_of(method, (4,))).records
    assert [record.n_bits for record in both] == [4, 6]
    assert both[0].average_precisions == alone[0].average_precisions


def test_methods_that_are_capped_say_so() -> None:
    (short, long) = run_trial(Trial(SPLIT, "itq", (10, 16))).records
    assert (short.n_bits_used, long.n_bits, long.n_bits_used) == (10, 16, 10)
    assert short.average_precisions == long.average_precisions


def test_pca_is_for_methods_that_take_it() -> None:
    (record,) = run_trial(Trial(SPLIT, "itq", (16,), pca=4)).records
    (without,) = run_trial(Trial(SPLIT, "itq", (16,))).records
    assert record.n_bits_used == 10
    assert record.average_precisions == without.average_precisions
    (record,) = run_trial(Trial(SPLIT, "lsh", (16,), pca=4)).records
    (without,) = run_trial(Trial(SPLIT, "lsh", (16,))).records
    assert record.n_bits_used == 16
    assert record.average_precisions != without.average_precisions


@pytest.mark.parametrize("method", METHODS)
def test_progress_ends_at_the_last_bit(method: str) -> None:
    seen: list[int] = []
    run_trial(trial_of(method, (4, 6)), seen.append)
    assert seen[-1] == 6
    assert seen == sorted(seen)


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_of_many_trials(jobs: int) -> None:
    seen: dict[int, int] = {}
    run_trials(
        [Trial(SPLIT, "lsh", (4, 6)), Trial(SPLIT, "itq", (5,))], jobs=jobs, on_progress=seen.__setitem__
    )
    assert seen == {0: 6, 1: 5}


@pytest.mark.parametrize("jobs", [1, 2])
def test_errors_of_a_trial_reach_the_caller(jobs: int) -> None:
    bad = dataclasses.replace(SPLIT, n_train=5000)
    with pytest.raises(InvalidArgument, match="more points than n_train=5000"):
        run_trials([Trial(bad, "lsh", (4,)), Trial(bad, "itq", (4,))], jobs=jobs)
