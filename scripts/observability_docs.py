"""Writes the metrics of a worker into docs/observability.md, from the code's list: `make docs`."""

from __future__ import annotations

import re
from pathlib import Path

from icestream.metrics.catalog import LABELS, METRICS, Metric, Part

PAGE = Path(__file__).parents[1] / "docs" / "observability.md"


def page_with_metrics(text: str) -> str:
    """The page with its tables as the code has them."""
    text = _filled(text, "metrics", "".join(map(_section, Part)))
    labels = "".join(f"| `{name}` | {meaning} |\n" for name, meaning in LABELS.items())
    return _filled(text, "labels", f"| label | |\n|---|---|\n{labels}")


def _section(part: Part) -> str:
    rows = "".join(_row(metric) for metric in METRICS if metric.part is part)
    return f"\n### {part.value}\n\n| metric | labels | kind | |\n|---|---|---|---|\n{rows}"


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    values = f" {metric.labels[-1].capitalize()}: {', '.join(metric.values)}." if metric.values else ""
    return f"| `{metric.name}` | {labels} | {metric.kind} | {metric.help}{values} |\n"


def _filled(text: str, name: str, content: str) -> str:
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    return pattern.sub(lambda found: f"{found[1]}{content}{found[2]}", text)


if __name__ == "__main__":
    PAGE.write_text(page_with_metrics(PAGE.read_text()))
