"""The page of all connectors."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.console.conftest import Pages
from tests.console.world import World


def test_search_finds_one_of_all_connectors(world: World, pages: Pages) -> None:
    for name in ("sink-apilogs", "sink-errorlogs", "sink-auditlogs"):
        world.add(name)
    pages.allow("404")  # the stream comes later
    page = pages.open(world.url)
    expect(page.locator("tr.entry")).to_have_count(3)
    page.keyboard.press("/")
    page.keyboard.type("audit")
    expect(page.locator("tr.entry")).to_have_count(1)
    expect(page.locator("tr.entry")).to_contain_text("sink-auditlogs")
