"""docs/observability.md says of other people's dashboards what the list of queries says, which a test asks
Prometheus."""

from __future__ import annotations

from tests.dashboards.page import PAGE, shown, tables


def test_the_page_has_the_list() -> None:
    assert shown(PAGE.read_text()).strip() == tables().strip(), "run: python -m tests.dashboards.page"
