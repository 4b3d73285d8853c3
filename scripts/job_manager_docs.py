"""Writes variables and metrics of the job manager into docs/job-manager.md, from the code: `make docs`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from icestream.api.config import Setting
from icestream.cli.environment_job import VARIABLES as OF_THE_PROCESS
from icestream.cluster.configs.reports import text_of
from icestream.connectors.iceberg.coordinator.job_config import VARIABLES
from icestream.metrics.catalog import METRICS

PAGE = Path(__file__).parents[1] / "docs" / "job-manager.md"


def page_with_tables(text: str) -> str:
    """The page with its tables as the code has them."""
    variables = [_variable(setting) for setting in (*VARIABLES.settings, *OF_THE_PROCESS.settings)]
    metrics = [f"| `{metric.name}` | {metric.kind} | {metric.help} |" for metric in METRICS if metric.of_job]
    text = _filled(text, "variables", ["| variable | default | |", "|---|---|---|", *variables])
    return _filled(text, "metrics", ["| metric | kind | |", "|---|---|---|", *metrics])


def _variable(setting: Setting) -> str:
    default = "required" if setting.is_required else text_of(setting.default) or ""
    return f"| `{setting.name}` | {default} | {setting.doc} |"


def _filled(text: str, name: str, lines: Sequence[str]) -> str:
    table = "\n".join(lines) + "\n"
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    return pattern.sub(lambda found: f"{found[1]}{table}{found[2]}", text)


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(PAGE.read_text()))
