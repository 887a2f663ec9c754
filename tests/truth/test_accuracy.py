"""A small seeded part of benchmarks/accuracy.py: one seed of what the whole tables, means of several, must reach.

RECORDED and REFINED are what seed 0 gave when they were written, RECORDED without refinement of all bits together: step
AP with the exact rule of the radius and anchored AP with that of the authors' code. Instruction levels sum in different
orders, which moves a cell by up to .015.
"""

import numpy as np
import pytest

from asymhash.experiments import Split, Trial, run_trial

BITS = (8, 16, 32, 64)
TOLERANCE = 0.02
KIND = {"pooled": "step_pairs", "mean_kth": "anchored_pairs"}
RECORDED = {
    ("pooled", "uniform10", "lin-v"): (0.194, 0.337, 0.493, 0.626),
    ("pooled", "uniform10", "lin-lin"): (0.197, 0.341, 0.482, 0.573),
    ("pooled", "uniform10", "symmetric"): (0.201, 0.336, 0.482, 0.610),
    ("pooled", "nursery", "lin-v"): (0.354, 0.537, 0.730, 0.832),
    ("pooled", "nursery", "lin-lin"): (0.393, 0.585, 0.746, 0.854),
    ("pooled", "nursery", "symmetric"): (0.382, 0.554, 0.743, 0.861),
    ("pooled", "digits", "lin-v"): (0.588, 0.769, 0.866, 0.911),
    ("pooled", "digits", "lin-lin"): (0.607, 0.765, 0.871, 0.921),
    ("pooled", "digits", "symmetric"): (0.593, 0.762, 0.871, 0.926),
    ("mean_kth", "uniform10", "lin-v"): (0.269, 0.418, 0.562, 0.676),
    ("mean_kth", "uniform10", "lin-lin"): (0.278, 0.419, 0.533, 0.622),
    ("mean_kth", "nursery", "lin-v"): (0.486, 0.623, 0.757, 0.849),
    ("mean_kth", "nursery", "lin-lin"): (0.497, 0.651, 0.790, 0.878),
}
REFINED = {
    ("uniform10", "lin-v"): (0.225, 0.371, 0.536, 0.683),
    ("uniform10", "lin-lin"): (0.217, 0.351, 0.482, 0.625),
    ("uniform10", "symmetric"): (0.218, 0.351, 0.482, 0.637),
    ("nursery", "lin-v"): (0.387, 0.625, 0.771, 0.869),
    ("nursery", "lin-lin"): (0.408, 0.585, 0.755, 0.860),
    ("nursery", "symmetric"): (0.399, 0.590, 0.743, 0.861),
    ("digits", "lin-v"): (0.649, 0.799, 0.883, 0.931),
    ("digits", "lin-lin"): (0.608, 0.763, 0.876, 0.928),
    ("digits", "symmetric"): (0.617, 0.727, 0.875, 0.927),
}
# The prototype's and the released code's numbers at 16, 32 and 64 bits, less what the benchmark allows.
REFERENCES = {
    ("pooled", "uniform10", "lin-v"): (0.323, 0.482, 0.589),
    ("pooled", "uniform10", "lin-lin"): (0.301, 0.455, 0.561),
    ("pooled", "uniform10", "symmetric"): (0.337, 0.474, 0.603),
    ("pooled", "nursery", "lin-v"): (0.481, 0.631, 0.716),
    ("pooled", "nursery", "lin-lin"): (0.513, 0.622, 0.698),
    ("pooled", "nursery", "symmetric"): (0.507, 0.633, 0.741),
    ("pooled", "digits", "lin-v"): (0.727, 0.817, 0.838),
    ("pooled", "digits", "lin-lin"): (0.713, 0.827, 0.888),
    ("pooled", "digits", "symmetric"): (0.720, 0.829, 0.889),
    ("mean_kth", "uniform10", "lin-v"): (0.419, 0.547, 0.657),
    ("mean_kth", "uniform10", "lin-lin"): (0.412, 0.512, 0.589),
    ("mean_kth", "nursery", "lin-v"): (0.556, 0.738, 0.846),
    ("mean_kth", "nursery", "lin-lin"): (0.584, 0.752, 0.856),
}
SEED_NOISE = 0.01  # of one seed about the mean of three, which is what the references are for


@pytest.mark.parametrize("case", list(RECORDED), ids="-".join)
def test_accuracy_is_what_it_was_and_grows_with_the_bits(case):
    rule, source, method = case
    outcome = run_trial(
        Trial(Split(source, seed=0, rule=rule), method, BITS, parameters=(("refine", False),))
    )
    assert outcome.n_queries > 700
    found = np.array([record.average_precisions[KIND[rule]] for record in outcome.records])
    assert (np.diff(found) > 0).all()
    np.testing.assert_allclose(found, RECORDED[case], rtol=0, atol=TOLERANCE)
    assert (found[1:] > np.array(REFERENCES[case]) - SEED_NOISE).all()


@pytest.mark.parametrize("case", list(REFINED), ids="-".join)
def test_refined_accuracy_is_what_it_was(case):
    source, method = case
    records = run_trial(Trial(Split(source, seed=0), method, BITS)).records
    found = np.array([record.average_precisions["step_pairs"] for record in records])
    assert (np.diff(found) > 0).all()
    np.testing.assert_allclose(found, REFINED[case], rtol=0, atol=TOLERANCE)
    if method == "lin-v":
        assert (found > np.array(RECORDED["pooled", source, method]) + 0.015).all()


@pytest.mark.parametrize("source", ["uniform10", "nursery", "digits"])
def test_learning_beats_random_hyperplanes_by_far(source):
    found = {
        method: run_trial(Trial(Split(source, seed=1), method, (8,))).records[0].average_precisions
        for method in ("lin-v", "lsh")
    }
    for kind, random in found["lsh"].items():
        assert found["lin-v"][kind] > random + 0.03, kind
