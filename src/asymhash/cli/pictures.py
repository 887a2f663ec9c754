"""The pictures of the demo."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from asymhash.artifact import open_atomically
from asymhash.methods import METHODS, find_method

if TYPE_CHECKING:
    from asymhash.cli.search import Found
    from asymhash.cli.tables import Summary

__all__ = ["draw_average_precision", "draw_search", "spread_out"]

# Okabe and Ito's colours and a grey, told apart with any colour vision; the markers tell them apart without colour.
_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00", "#8C8C8C")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LABEL_GAP = 0.05  # of the height of a panel: labels nearer than this would run into each other


def draw_average_precision(summaries: Sequence[Summary], path: Path) -> None:
    """Draw step AP against bits, one panel for each data set, lines labelled at their ends."""
    sources = list(dict.fromkeys(summary.source for summary in summaries))
    figure = Figure(figsize=(4.6 * len(sources), 4.4), dpi=130, layout="constrained")
    panels = figure.subplots(1, len(sources), squeeze=False, sharey=True)[0]
    top = max(summary.means["step_pairs"] for summary in summaries)
    for panel, source in zip(panels, sources, strict=True):
        _draw_panel(panel, [summary for summary in summaries if summary.source == source], top=1.15 * top)
        panel.set_title(source, fontsize=12)
    panels[0].set_ylabel("average precision (step rule)")
    title = "How well codes find similar items: average precision against code length; one split, higher is better"
    figure.suptitle(title, fontsize=12)
    _save(figure, path)


def _draw_panel(panel: Axes, summaries: Sequence[Summary], *, top: float) -> None:
    lines = []
    lengths = sorted({summary.n_bits for summary in summaries})
    reach = lengths[-1] - lengths[0] or 8
    for number, name in enumerate(METHODS):
        rows = [summary for summary in summaries if summary.method == name]
        if not rows:
            continue
        colour = _COLOURS[number % len(_COLOURS)]
        # Points are where the bits are; a method that cannot give more of them goes on as a dotted line.
        points = sorted({(row.n_bits_used, row.means["step_pairs"]) for row in rows})
        bits, values = [point[0] for point in points], [point[1] for point in points]
        marker = _MARKERS[number % len(_MARKERS)]
        above = 10 - number  # the first method's line lies on top where lines cross
        panel.plot(bits, values, color=colour, marker=marker, markersize=5.0, linewidth=1.8, zorder=above)
        panel.plot([bits[-1], lengths[-1]], [values[-1]] * 2, color=colour, linestyle=":", linewidth=1.4)
        capped = f" ({bits[-1]} bits)" if bits[-1] < rows[-1].n_bits else ""
        lines.append((values[-1], find_method(name).title + capped, colour))
    places = spread_out([line[0] for line in lines], _LABEL_GAP * top)
    for (value, title, colour), place in zip(lines, places, strict=True):
        start, end = lengths[-1] + 0.03 * reach, lengths[-1] + 0.1 * reach
        panel.plot(
            [start, end], [value, place], color=colour, linewidth=0.7
        )  # leads from the line to its name
        panel.text(end + 0.015 * reach, place, title, color=colour, fontsize=9, va="center")
    panel.set_xticks(lengths)
    panel.set_xlim(lengths[0] - 0.05 * reach, lengths[-1] + 0.47 * reach)
    panel.set_ylim(0, top)
    panel.set_xlabel("bits")
    panel.grid(axis="y", color="#dddddd", linewidth=0.8)
    panel.spines[["top", "right"]].set_visible(False)


def spread_out(values: Sequence[float], gap: float) -> list[float]:
    """Move values apart until neighbours are at least `gap` from each other, keeping their order and middle.

    Parameters
    ----------
    values : sequence of float
        Where labels would be best.
    gap : float
        How near they may come.

    Returns
    -------
    list of float
        Where they go, in the order given.

    Examples
    --------
    >>> [round(place, 2) for place in spread_out([0.5, 0.52, 0.9], 0.1)]
    [0.46, 0.56, 0.9]
    """
    # Clusters of labels that touch are merged until none touches another; each stands around its own middle.
    clusters: list[list[int]] = []
    for number in sorted(range(len(values)), key=lambda index: (values[index], index)):
        clusters.append([number])
        while (
            len(clusters) > 1
            and _edge(values, clusters[-1], gap, -1) - _edge(values, clusters[-2], gap, 1) < gap
        ):
            last = clusters.pop()
            clusters[-1].extend(last)
    places = [0.0] * len(values)
    for cluster in clusters:
        bottom = _edge(values, cluster, gap, -1)
        for position, number in enumerate(cluster):
            places[number] = bottom + position * gap
    return places


def _edge(values: Sequence[float], cluster: Sequence[int], gap: float, side: int) -> float:
    """Return the lowest (-1) or highest (+1) place in a cluster."""
    middle = sum(values[number] for number in cluster) / len(cluster)
    return middle + side * gap * (len(cluster) - 1) / 2


def draw_search(found: Found, path: Path) -> None:
    """Draw a query and what was found for it, with distances."""
    n_found = len(found.images)
    figure = Figure(figsize=(1.15 * (n_found + 1.4), 2.5), dpi=130, layout="constrained")
    panels = figure.subplots(1, n_found + 1, width_ratios=[1.5, *([1.0] * n_found)])
    _draw_image(panels[0], found.query_image, f"query: a {found.query_label}", "#000000")
    for place, panel in enumerate(panels[1:]):
        is_same = found.labels[place] == found.query_label
        text = "1 bit differs" if found.distances[place] == 1 else f"{found.distances[place]} bits differ"
        _draw_image(panel, found.images[place], text, "#0072B2" if is_same else "#D55E00")
        panel.set_xlabel(f"a {found.labels[place]}", fontsize=9, color="#000000" if is_same else "#D55E00")
    figure.suptitle(
        f"A held-out digit, and the {n_found} nearest of {found.n_database} by their {found.n_bits}-bit codes",
        fontsize=11,
    )
    _save(figure, path)


def _draw_image(panel: Axes, image: np.ndarray, title: str, colour: str) -> None:
    panel.imshow(image, cmap="gray_r", interpolation="nearest")
    panel.set_title(title, fontsize=9, color=colour)
    panel.set_xticks([])
    panel.set_yticks([])
    for spine in panel.spines.values():
        spine.set_color(colour)
        spine.set_linewidth(1.6)


def _save(figure: Figure, path: Path) -> None:
    FigureCanvasAgg(figure)
    content = io.BytesIO()
    figure.savefig(content, format="png")
    with open_atomically(path) as file:
        file.write(content.getbuffer())
