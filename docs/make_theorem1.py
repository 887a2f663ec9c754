"""Draw docs/images/theorem1-gap.png; run it from anywhere: `python docs/make_theorem1.py`."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from asymhash.theory import exponential_gap

ASYMMETRIC, SYMMETRIC = "#0b6e99", "#c0392b"


def main() -> None:
    """Draw the bits needed for r = 2..12, and the matrices of r = 4."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 4), width_ratios=[1.5, 1, 1.17], layout="constrained")
    draw_bits(axes[0])
    draw_matrices(axes[1], axes[2])
    figure.savefig(Path(__file__).parent / "images" / "theorem1-gap.png", dpi=110)


def draw_bits(axis: Axes) -> None:
    """Plot code lengths against the number of points."""
    gaps = [exponential_gap(r) for r in range(2, 13)]
    points = [gap.n_points for gap in gaps]
    lower = [gap.symmetric_lower_bound for gap in gaps]
    upper = [gap.asymmetric_bits for gap in gaps]
    axis.fill_between(points, upper, lower, where=np.less(upper, lower), color="0.93")
    axis.plot(points, lower, "s-", color=SYMMETRIC)
    axis.plot(points, upper, "o-", color=ASYMMETRIC)
    axis.annotate("symmetric:\nat least n/2 bits", (points[6], lower[6]), (40, 500), color=SYMMETRIC)
    axis.annotate("asymmetric: 2 log2 n bits are enough", (points[4], upper[4]), (34, 4.6), color=ASYMMETRIC)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log", base=2)
    axis.set_xlabel("points n")
    axis.set_ylabel("bits of a code that expresses S")
    axis.set_title("The gap")


def draw_matrices(left: Axes, right: Axes) -> None:
    """Show the similarity and, beside it, the inner products of the asymmetric codes."""
    gap = exponential_gap(4)
    queries, items = (codes.to_signs().astype(int) for codes in (gap.query_codes, gap.database_codes))
    products = queries @ items.T
    left.imshow(gap.similarity.to_dense(), cmap="RdBu", vmin=-1.6, vmax=1.6)
    left.set_title("S for n = 16\n(blue: similar)")
    limit = np.abs(products - gap.threshold).max()
    picture = right.imshow(products - gap.threshold, cmap="RdBu", vmin=-limit, vmax=limit)
    right.set_title("Inner products of 8-bit codes\nminus the threshold: the same signs")
    for axis in (left, right):
        axis.set_xticks([])
        axis.set_yticks([])
        axis.set_xlabel("database items")
    left.set_ylabel("queries")
    right.figure.colorbar(picture, ax=right, shrink=0.8)


if __name__ == "__main__":
    main()
