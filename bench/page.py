"""Puts the tables of a result into docs/benchmark.md, between the marks of their section."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parent.parent / "docs" / "benchmark.md"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, ["---"] * len(headings), *rows))


def with_section(page: str, section: str, text: str) -> str:
    """The page with the text of a section replaced."""
    marks = re.compile(rf"(<!-- {section} -->\n).*?(\n<!-- end of {section} -->)", re.DOTALL)
    if not marks.search(page):
        raise ValueError(f"the page has no section '{section}'")
    return marks.sub(lambda found: f"{found[1]}{text}{found[2]}", page)


def publish(section: str, text: str) -> None:
    PAGE.write_text(with_section(PAGE.read_text(), section, text))
