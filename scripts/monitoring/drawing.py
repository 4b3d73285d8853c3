"""A dashboard as a picture: its panels at their places, with what a Prometheus answers to their queries.
Drawn by matplotlib: Grafana is not needed for it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

PAPER, INK, FAINT = "#181b1f", "#d8d9da", "#8e8e8e"
_COLOURS: Final = ("#73bf69", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#fade2a", "#8ab8ff", "#ff7383")
_CELL: Final = 0.55
"""Inches of a unit of Grafana's grid across; down it is half as much again."""
_MOST_LINES: Final = 5

Ask = Callable[[str, bool], list[dict[str, Any]]]
"""An expression, and whether only its value now is wanted."""


def draw(document: dict[str, Any], ask: Ask, file: Path, most_rows: int) -> None:
    """The dashboard from its top, so many units of its grid down."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [one for one in document["panels"] if one["gridPos"]["y"] + one["gridPos"]["h"] <= most_rows]
    while shown[-1]["type"] == "row":
        # Its panels are further down.
        shown.pop()
    height = max(one["gridPos"]["y"] + one["gridPos"]["h"] for one in shown) + 1.5
    figure = pyplot.figure(figsize=(24 * _CELL, height * _CELL * 0.75), facecolor="#111217", dpi=100)
    figure.text(
        0.01, 1 - 0.75 / height, document["title"], color=INK, fontsize=13, va="center", weight="bold"
    )
    for panel in shown:
        _panel(figure, panel, ask, height)
    figure.savefig(file, facecolor=figure.get_facecolor())
    pyplot.close(figure)
    make_small(file)


def make_small(file: Path) -> None:
    """With 48 colours it looks the same, and takes a quarter."""
    from PIL import Image

    with Image.open(file) as picture:
        small = picture.convert("RGB").quantize(48, dither=Image.Dither.NONE)
    small.save(file, optimize=True)


def _panel(figure: Any, panel: dict[str, Any], ask: Ask, height: float) -> None:
    at = panel["gridPos"]
    left, width = at["x"] / 24, at["w"] / 24
    bottom, tall = 1 - (at["y"] + at["h"] + 1.5) / height, at["h"] / height
    if panel["type"] == "row":
        figure.text(left + 0.01, bottom + tall / 2, f"⌄ {panel['title']}", color=INK, fontsize=9, va="center")
        return
    card = figure.add_axes((left + 0.003, bottom + 0.1 / height, width - 0.006, tall - 0.2 / height))
    card.set_facecolor(PAPER)
    card.set_xticks([])
    card.set_yticks([])
    for edge in card.spines.values():
        edge.set_color("#2c3235")
    title = panel["title"]
    card.text(0.02, 1 - 0.35 / at["h"], title, color=INK, fontsize=7.5, va="top", transform=card.transAxes)
    {"timeseries": _lines, "stat": _number, "table": _table}[panel["type"]](card, panel, ask)


def _lines(card: Any, panel: dict[str, Any], ask: Ask) -> None:
    unit = panel["fieldConfig"]["defaults"]["unit"]
    plot = card.inset_axes((0.11, 0.24, 0.86, 0.55))
    plot.set_facecolor(PAPER)
    plot.tick_params(colors=FAINT, labelsize=5.5, length=0)
    plot.grid(color="#2c3235", linewidth=0.5)
    for edge in plot.spines.values():
        edge.set_visible(False)
    drawn = 0
    below: dict[float, float] = {}
    is_stacked = panel["fieldConfig"]["defaults"]["custom"]["stacking"]["mode"] == "normal"
    for target in panel["targets"]:
        for series in ask(target["expr"], False):
            values = [(float(at), float(value)) for at, value in series["values"] if _is_number(value)]
            if not values:
                continue
            colour = _COLOURS[drawn % len(_COLOURS)]
            times = [at for at, _ in values]
            base = [below.get(at, 0.0) if is_stacked else 0.0 for at in times]
            tops = [low + value for low, (_, value) in zip(base, values, strict=True)]
            below |= dict(zip(times, tops, strict=True)) if is_stacked else {}
            plot.plot(times, tops, color=colour, linewidth=1, label=_legend(target, series)[:32])
            plot.fill_between(times, base, tops, color=colour, alpha=0.35 if is_stacked else 0.1, linewidth=0)
            drawn += 1
    if not drawn:
        plot.set_axis_off()
        card.text(0.5, 0.45, "No data", color=FAINT, fontsize=8, ha="center", transform=card.transAxes)
        return
    plot.set_ylim(bottom=0)
    plot.yaxis.set_major_locator(_few())
    plot.yaxis.set_major_formatter(lambda value, _: _shown(value, unit))
    plot.xaxis.set_major_locator(_few())
    plot.xaxis.set_major_formatter(lambda value, _: _clock(value))
    names, labels = plot.get_legend_handles_labels()
    card.legend(
        names[:_MOST_LINES],
        labels[:_MOST_LINES],
        loc="lower left",
        ncols=_MOST_LINES,
        fontsize=5.5,
        labelcolor=FAINT,
        frameon=False,
        handlelength=1,
        borderpad=0.1,
        columnspacing=1,
    )


def _number(card: Any, panel: dict[str, Any], ask: Ask) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    found = ask(panel["targets"][0]["expr"], True)
    if not found:
        text, colour = "No data", FAINT
    elif panel["options"]["textMode"] == "name":
        text, colour = _legend(panel["targets"][0], found[0]), _COLOURS[0]
    else:
        value = float(found[0]["value"][1])
        text = _shown(value, defaults["unit"])
        passed = [one["color"] for one in defaults["thresholds"]["steps"] if (one["value"] or 0) <= value]
        named = {"green": _COLOURS[0], "orange": _COLOURS[2], "red": _COLOURS[3], "blue": _COLOURS[1]}
        colour = named[passed[-1] if passed else "green"]
    card.text(0.5, 0.4, text, color=colour, fontsize=15, ha="center", va="center", transform=card.transAxes)


def _table(card: Any, panel: dict[str, Any], ask: Ask) -> None:
    renamed = panel["transformations"][1]["options"]["renameByName"]
    units = {
        one["matcher"]["options"]: one["properties"][0]["value"] for one in panel["fieldConfig"]["overrides"]
    }
    rows: dict[str, dict[str, str]] = {}
    for target in panel["targets"]:
        for series in ask(target["expr"], True):
            row = rows.setdefault(series["metric"].get("connector", ""), {})
            if state := series["metric"].get("state"):
                row["State"] = state
                continue
            title = renamed[f"Value #{target['refId']}"]
            row[title] = _shown(float(series["value"][1]), units[title])
    titles = ["State", *(title for name, title in renamed.items() if name.startswith("Value"))]
    for across, title in enumerate(["Connector", *titles]):
        _cell(card, across, 0, title, FAINT)
    for down, (name, row) in enumerate(sorted(rows.items())[:8], start=1):
        _cell(card, 0, down, name, _COLOURS[1])
        for across, title in enumerate(titles, start=1):
            _cell(card, across, down, row.get(title, ""), INK)


def _cell(card: Any, across: int, down: int, text: str, colour: str) -> None:
    left = 0.02 if across == 0 else 0.22 + 0.13 * (across - 1)
    card.text(left, 0.8 - 0.09 * down, text, color=colour, fontsize=7, transform=card.transAxes)


def _few() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4)


def _legend(target: dict[str, Any], series: dict[str, Any]) -> str:
    labels: dict[str, str] = series["metric"]
    if target["legendFormat"] == "__auto":
        return ", ".join(labels.values())
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), target["legendFormat"])


def _clock(at: float) -> str:
    import time

    return time.strftime("%H:%M:%S", time.gmtime(at))


def _is_number(value: str) -> bool:
    return math.isfinite(float(value))


def _shown(value: float, unit: str) -> str:
    """About as Grafana writes it."""
    if not math.isfinite(value):
        return "–"
    if unit == "s":
        if value >= 120:
            return f"{value / 60:.3g} min"
        return f"{value:.3g} s" if value >= 1 or value == 0 else f"{value * 1000:.3g} ms"
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    step, names = (
        (1024, ("B", "KiB", "MiB", "GiB", "TiB")) if unit in ("bytes", "Bps") else (1000, ("", "K", "M", "G"))
    )
    power = 0
    while abs(value) >= step and power < len(names) - 1:
        value, power = value / step, power + 1
    ending = {"Bps": "/s", "cps": "/s"}.get(unit, "")
    return f"{value:.3g} {names[power]}{ending}".strip().replace(" /s", "/s")
