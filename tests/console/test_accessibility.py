"""Every page, light and dark: what axe-core can find, and what fits into a narrow window."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.console.conftest import Pages
from tests.console.scenes import busy_worker
from tests.console.world import ICEBERG, World, running_world

CONNECTOR = "#/c/iceberg-sink-apilogs"
ADDRESSES = (
    "",
    "#/connectors?q=nothing+has+this",
    CONNECTOR,
    f"{CONNECTOR}/batches",
    f"{CONNECTOR}/commits",
    f"{CONNECTOR}/letters",
    f"{CONNECTOR}/offsets",
    f"{CONNECTOR}/config",
    f"{CONNECTOR}/events",
    "#/c/iceberg-sink-auditlogs",
    "#/letters",
    "#/workers",
    "#/plugins",
    f"#/plugins/{quote(ICEBERG)}",
    "#/loggers",
    "#/new",
    "#/nowhere",
)
NOT_HERE = "404|400"
"""Jobs that only pretend have no dead letters and no offsets: their pages say so."""


@pytest.fixture(scope="module")
def busy() -> Iterator[World]:
    with running_world() as world:
        busy_worker(world)
        yield world


def settled(page: Page) -> Page:
    expect(page.locator("main .nothing .spin").first).not_to_be_attached()
    expect(page.locator("main :is(h1, h2)").first).to_be_attached()
    return page


def violations(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {one['help']}: {node['html'][:300]} {node.get('failureSummary', '')[:300]}"
        for one in found
        for node in one["nodes"][:3]
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(busy: World, pages: Pages, theme: str) -> None:
    # axe-core is put into the page as text, which the page's own policy forbids.
    context = pages.context(bypass_csp=True, color_scheme=theme, reduced_motion="reduce")
    page = pages.open_in(context, busy.url)
    pages.allow(NOT_HERE)
    wrong = []
    for address in ADDRESSES:
        page.goto(busy.url + address)
        wrong += [f"{address or 'overview'}: {one}" for one in violations(settled(page))]
    assert not wrong, "\n".join(wrong)


def test_axe_finds_nothing_in_rows_and_dialogs_that_are_open(busy: World, pages: Pages) -> None:
    page = pages.open_in(pages.context(bypass_csp=True, reduced_motion="reduce"), busy.url)
    page.get_by_role("button", name="More about iceberg-sink-auditlogs").click()
    page.get_by_label("Select iceberg-sink-auditlogs").check()
    expect(page.locator("tr.more").get_by_role("button", name="Restart")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Keys and help").click()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.goto(f"{busy.url}{CONNECTOR}")
    page.get_by_role("region", name="Batches").locator("tbody button").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert violations(page) == []


@pytest.mark.parametrize("width", [360, 640])
def test_nothing_is_cut_off_in_a_narrow_window(busy: World, pages: Pages, width: int) -> None:
    """640 pixels are 1,280 at 200 % zoom."""
    page = pages.open(busy.url, viewport={"width": width, "height": 800})
    pages.allow(NOT_HERE)
    too_wide = []
    for address in ADDRESSES:
        page.goto(busy.url + address)
        settled(page)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth + 1"):
            too_wide.append(address)
    assert too_wide == []


def test_the_tab_that_is_shown_is_in_sight_in_a_narrow_window(busy: World, pages: Pages) -> None:
    page = pages.open(f"{busy.url}{CONNECTOR}/events", viewport={"width": 360, "height": 800})
    expect(page.locator(".tabs [aria-current]", has_text="Events")).to_be_in_viewport(ratio=0.9)
