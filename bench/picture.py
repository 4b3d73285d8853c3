"""The result as one small SVG: three pairs of bars, a dot for each round."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.report import Outcome, median_ratios
from bench.rounds import Drained

_THEIRS: Final = "#9aa5b1"
_OURS: Final = "#1f77b4"
_PANELS: Final[tuple[tuple[str, str, Callable[[Drained], float]], ...]] = (
    ("drain", "records/s (more is better)", lambda run: run.rate),
    ("cpu", "CPU s per million (less is better)", lambda run: run.cpu_per_million),
    ("memory", "peak memory, MB (less is better)", lambda run: run.peak_memory_bytes / 2**20),
)


def draw(outcome: Outcome, file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    # Text stays text: small, searchable, and the same file for the same figures.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "icestream", "font.size": 9})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(_PANELS), figsize=(9, 3.2), layout="constrained")
    medians = median_ratios(outcome.runs)
    for axis, (name, label, measure) in zip(axes, _PANELS, strict=True):
        for at, (side, colour) in enumerate((("theirs", _THEIRS), ("ours", _OURS))):
            values = [measure(run) for run in outcome.of(side)]
            height = statistics.median(values)
            axis.bar(at, height, width=0.6, color=colour)
            axis.plot([at] * len(values), values, "k.", markersize=4)
            axis.text(
                at, height / 2, f"{height:,.0f}", ha="center", va="center", color="white", weight="bold"
            )
        axis.set_xticks([0, 1], ["Kafka Connect", "Icestream"])
        axis.set_title(f"{medians[name]:.2f}×", weight="bold")
        axis.set_ylabel(label)
        axis.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(_caption(outcome), fontsize=8)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


def _caption(outcome: Outcome) -> str:
    runs = outcome.of("ours")
    noise = " on a busy machine" if outcome.disturbed else ""
    return (
        f"{runs[0].records:,} records of {outcome.bytes_per_record:.0f} bytes,"
        f" {outcome.machine['cores']} cores, {len(runs)} rounds{noise};"
        f" bars are medians, dots are rounds; {outcome.measured_on}"
    )
