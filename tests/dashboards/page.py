"""The tables of docs/observability.md that say which panels of other people's dashboards show our workers,
from the list of queries. `python -m tests.dashboards.page` writes them there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.dashboards.queries import CONFLUENT, CONFLUENT_OLD, QUERIES, REPORTER, STRIMZI

PAGE: Final = Path(__file__).parents[2] / "docs" / "observability.md"
_BEGIN: Final = "<!-- dashboards -->\n"
_END: Final = "<!-- end of dashboards -->\n"


def tables() -> str:
    parts = (_table(pair) for pair in ((STRIMZI, REPORTER), (CONFLUENT, CONFLUENT_OLD)))
    return "\n".join(line for part in parts for line in part)


def _table(dashboards: tuple[str, str]) -> Iterator[str]:
    yield f"\n| panel | {' | '.join(f'{one}: queries with data' for one in dashboards)} | without data |"
    yield "|---|---|---|---|"
    asked = [query for query in QUERIES if query.dashboard in dashboards]
    for panel in dict.fromkeys(query.panel for query in asked):
        cells = []
        for dashboard in dashboards:
            own = [query for query in asked if (query.dashboard, query.panel) == (dashboard, panel)]
            cells.append(f"{sum(not query.empty for query in own)} of {len(own)}")
        why = dict.fromkeys(query.empty for query in asked if query.panel == panel and query.empty)
        yield f"| {panel} | {' | '.join(cells)} | {'; '.join(why)} |"
    totals = [[query for query in asked if query.dashboard == dashboard] for dashboard in dashboards]
    cells = [f"**{sum(not query.empty for query in own)} of {len(own)}**" for own in totals]
    yield f"| **all** | {' | '.join(cells)} | |"


def shown(page: str) -> str:
    """What the page has between the marks."""
    return page.partition(_BEGIN)[2].partition(_END)[0]


def main() -> None:
    text = PAGE.read_text()
    before, _, rest = text.partition(_BEGIN)
    PAGE.write_text(f"{before}{_BEGIN}{tables()}\n{_END}{rest.partition(_END)[2]}")


if __name__ == "__main__":
    main()
