"""A small seeded part of benchmarks/accuracy.py: the faithful version reaches its reference numbers.

The references are step AP of a prototype on the same protocol (means of 3 seeds; the seeds of a cell differ by .01),
hence the tolerance of .03 for one seed. The whole table is the benchmark's.
"""

import pytest

from asymhash.experiments import Split, Trial, run_trial

TOLERANCE = 0.03
REFERENCES = {
    ("uniform10", "lin-v"): 0.333,
    ("uniform10", "lin-lin"): 0.311,
    ("uniform10", "symmetric"): 0.347,
    ("nursery", "lin-v"): 0.491,
    ("nursery", "lin-lin"): 0.523,
    ("nursery", "symmetric"): 0.517,
    ("digits", "lin-v"): 0.737,
    ("digits", "lin-lin"): 0.723,
    ("digits", "symmetric"): 0.730,
    ("digits", "itq"): 0.686,
}


@pytest.mark.parametrize(("source", "method"), list(REFERENCES))
def test_16_bits_reach_the_reference(source, method):
    outcome = run_trial(Trial(Split(source, seed=0), method, (8, 16)))
    short, long = (record.average_precisions["step_pairs"] for record in outcome.records)
    assert outcome.n_queries > 700
    assert long > short
    assert long > REFERENCES[source, method] - TOLERANCE


@pytest.mark.parametrize("source", ["uniform10", "nursery", "digits"])
def test_learning_beats_random_hyperplanes_by_far(source):
    found = {
        method: run_trial(Trial(Split(source, seed=1), method, (8,))).records[0].average_precisions
        for method in ("lin-v", "lsh")
    }
    for kind, random in found["lsh"].items():
        assert found["lin-v"][kind] > random + 0.03, kind
