"""The page and a worker that goes away, comes back, or speaks through a proxy that holds the stream up."""

from __future__ import annotations

import re
from dataclasses import replace

from playwright.sync_api import Route, expect

from icestream.api.status import Progress
from icestream.cluster.settings.rest_settings import Listener
from icestream.rest.server import HERE, bind, serve
from tests.console.conftest import Pages
from tests.console.world import World, running_world


def test_a_worker_that_restarts_is_not_connected_and_then_live_again(pages: Pages) -> None:
    pages.allow("ERR_|Failed to load|net::")
    with running_world() as world:
        world.add("sink")
        page = pages.open(world.url)
        expect(page.locator(".live")).to_have_attribute("data-is", "live")
        port = world.server.port
        world.server.stop()
        expect(page.locator(".live")).to_have_text("not connected")
        expect(page.get_by_role("alert")).to_contain_text("Not connected")
        expect(page.locator("tr.entry")).to_have_count(1)
        world.add("second")
        world.server = serve(
            world.service, bind(replace(HERE, listeners=(Listener("http", "127.0.0.1", port),)))
        )
        expect(page.locator(".live")).to_have_attribute("data-is", "live")
        expect(page.get_by_role("alert")).to_have_count(0)
        expect(page.locator("tr.entry")).to_have_count(2)


def test_new_files_offer_a_reload(world: World, pages: Pages) -> None:
    world.add("sink")
    context = pages.context()

    def newer(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "assets": "0123456789abcdef"})

    page = pages.open_in(context, world.url)
    expect(page.get_by_role("button", name="Reload")).to_have_count(0)
    context.route("**/api/me", newer)
    page.reload()
    page.get_by_role("button", name="Reload").click()
    expect(page.locator("tr.entry")).to_have_count(1)


def test_where_no_stream_comes_through_the_page_asks(world: World, pages: Pages) -> None:
    pages.allow("ERR_FAILED|Failed to load")
    manager = world.add("sink", progress=Progress(rows=1))
    context = pages.context()
    context.route(re.compile("/api/events"), lambda route: route.abort())
    page = pages.open_in(context, world.url)
    expect(page.locator(".live")).to_have_attribute("data-is", "polling")
    manager.advance(Progress(rows=31_337))
    expect(page.locator("tr.entry")).to_contain_text("31,337")


HIDE = """hidden => {
  Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
  document.dispatchEvent(new Event("visibilitychange")); }"""


def test_a_hidden_tab_gives_its_stream_up(world: World, pages: Pages) -> None:
    world.add("sink")
    page = pages.open(world.url)
    expect(page.locator(".live")).to_have_attribute("data-is", "live")
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/api/events")):
        page.evaluate(HIDE, True)
    world.add("second")
    page.evaluate(HIDE, False)
    expect(page.locator("tr.entry")).to_have_count(2)


def test_eight_tabs_work(world: World, pages: Pages) -> None:
    """Tabs share six connections: all but one are hidden, and hold none. (No tab is by itself in here.)"""
    world.add("sink")
    context = pages.context()
    opened = []
    for _ in range(8):
        page = pages.open_in(context, world.url)
        expect(page.locator("tr.entry")).to_have_count(1)
        page.evaluate(HIDE, True)
        opened.append(page)
    world.add("second")
    for page in opened:
        page.evaluate(HIDE, False)
        expect(page.locator("tr.entry")).to_have_count(2)
        page.evaluate(HIDE, True)
