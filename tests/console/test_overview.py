"""The page of all connectors."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from icestream.api.status import Progress
from tests.console.conftest import Pages
from tests.console.world import World, running_world

MANY = 1_000
MOST_ROWS = 60


def rows(page: Page) -> list[str]:
    return page.locator("tr.entry .name").all_inner_texts()


def test_a_failed_connector_is_on_top_with_its_reason_and_restart_follows_to_running(
    world: World, pages: Pages
) -> None:
    world.add("apilogs", progress=Progress(lag=0, rows=10))
    world.add("zebra-auditlogs").fail("catalog http://cat:8181 refused the login (401)")
    world.add("errorlogs")
    page = pages.open(world.url)
    first = page.locator("tr.entry").first
    expect(first).to_contain_text("zebra-auditlogs")
    expect(first).to_contain_text("refused the login (401)")
    expect(first.locator(".state")).to_have_text("failed")
    first.get_by_role("button", name="More about zebra-auditlogs").click()
    more = page.locator("tr.more")
    more.get_by_role("button", name="Restart").click()
    expect(page.locator(".toast")).to_contain_text("zebra-auditlogs is RUNNING")
    expect(page.locator("tr.entry .state", has_text="failed")).to_have_count(0)


def test_the_same_by_keyboard_alone(world: World, pages: Pages) -> None:
    world.add("apilogs")
    world.add("zebra-auditlogs").fail("the bucket is gone")
    page = pages.open(world.url)
    expect(page.locator("tr.entry")).to_have_count(2)
    page.keyboard.press("j")
    expect(page.locator("tr.entry[aria-current]")).to_contain_text("zebra-auditlogs")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("zebra-auditlogs")
    restart = page.get_by_role("button", name="Restart")
    expect(restart).to_be_visible()
    while not restart.evaluate("element => element === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text("zebra-auditlogs is RUNNING")
    page.keyboard.press("g")
    page.keyboard.press("o")
    expect(page.locator("tr.entry")).to_have_count(2)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_single_keys_can_be_switched_off(world: World, pages: Pages) -> None:
    world.add("apilogs")
    page = pages.open(world.url)
    page.get_by_role("button", name="Keys and help").click()
    page.get_by_label("Single keys are on").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(page.locator("tr.entry[aria-current]")).to_have_count(0)


def test_each_count_filters_and_the_address_shows_the_same_rows_elsewhere(world: World, pages: Pages) -> None:
    for name in ("a-one", "b-two", "c-three", "d-four"):
        world.add(name)
    world.managers.latest("b-two").fail("no")
    world.service.pause("c-three")
    page = pages.open(world.url)
    expect(page.locator("tr.entry")).to_have_count(4)
    expect(page.locator(".chip", has_text="paused")).to_contain_text("1")
    page.locator(".chip", has_text="paused").click()
    expect(page.locator("tr.entry")).to_have_count(1)
    page.locator(".chip", has_text="failed").click()
    expect(page.locator("tr.entry")).to_have_count(2)
    assert rows(page) == ["b-two", "c-three"]
    page.get_by_role("button", name="Name").click()
    page.get_by_role("button", name="Name").click()
    expect(page.locator("tr.entry .name").first).to_have_text("c-three")
    other = pages.open(page.url)
    expect(other.locator("tr.entry")).to_have_count(2)
    assert rows(other) == rows(page) == ["c-three", "b-two"]
    for _ in range(3):
        page.go_back()
    expect(page.locator("tr.entry")).to_have_count(1)
    page.go_back()
    expect(page.locator("tr.entry")).to_have_count(4)


def test_a_filter_that_matches_nothing_says_so_and_can_be_cleared(world: World, pages: Pages) -> None:
    world.add("apilogs")
    page = pages.open(f"{world.url}#/connectors?q=nothing+has+this")
    expect(page.get_by_text("No connector matches")).to_be_visible()
    page.get_by_role("button", name="Clear the filters").click()
    expect(page.locator("tr.entry")).to_have_count(1)


def test_no_connectors_says_what_next(world: World, pages: Pages) -> None:
    page = pages.open(world.url)
    expect(page.get_by_text("No connectors yet")).to_be_visible()
    expect(page.locator("main").get_by_role("link", name="New connector")).to_be_visible()


def test_states_and_numbers_move_without_a_reload(world: World, pages: Pages) -> None:
    manager = world.add("apilogs", progress=Progress(lag=5, rows=10))
    page = pages.open(world.url)
    expect(page.locator("tr.entry")).to_contain_text("10")
    expect(page.locator(".live")).to_have_attribute("data-is", "live")
    manager.advance(Progress(lag=1_234, rows=987_654))
    expect(page.locator("tr.entry")).to_contain_text("987,654")
    expect(page.locator("tr.entry")).to_contain_text("1,234")
    world.add("brand-new")
    expect(page.locator("tr.entry")).to_have_count(2)
    world.service.delete("apilogs")
    expect(page.locator("tr.entry")).to_have_count(1)


def test_the_selected_are_paused_and_resumed_together(world: World, pages: Pages) -> None:
    for name in ("a", "b", "c"):
        world.add(name)
    page = pages.open(world.url)
    page.get_by_label("Select all that are shown").check()
    page.get_by_label("Select b", exact=True).uncheck()
    bar = page.get_by_role("region", name="Selected connectors")
    expect(bar).to_contain_text("2 connectors selected")
    bar.get_by_role("button", name="Pause").click()
    expect(page.locator(".toast")).to_contain_text("2 connectors paused")
    expect(page.locator("tr.entry", has_text="paused")).to_have_count(2)


@pytest.fixture(scope="module")
def crowd() -> object:
    with running_world() as world:
        for number in range(MANY):
            world.add(f"sink-{number:04d}")
        yield world


def test_a_thousand_connectors_are_few_rows_in_the_page(crowd: World, pages: Pages) -> None:
    page = pages.open(crowd.url)
    expect(page.locator("tr.entry").first).to_contain_text("sink-0000")
    expect(page.locator("table.virtual")).to_have_attribute("aria-rowcount", str(MANY + 1))
    assert page.locator("tr.entry").count() <= MOST_ROWS
    page.keyboard.press("End")
    expect(page.locator("tr.entry .name", has_text=f"sink-{MANY - 1:04d}")).to_be_visible()
    assert page.locator("tr.entry").count() <= MOST_ROWS
    page.keyboard.press("/")
    page.keyboard.type("sink-0500")
    expect(page.locator("tr.entry")).to_have_count(1)
    expect(page.locator("tr.entry")).to_contain_text("sink-0500")
    first_row = page.evaluate(
        "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd + ' ms to the page; '"
        " + performance.getEntriesByName('first-rows').map(one => one.startTime + ' ms to the rows').join()"
    )
    print(first_row)
