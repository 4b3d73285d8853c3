"""What each level shows in the browser, logins, and pages of other origins."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from icestream.cluster.settings.console_settings import ConsoleConfig, Level
from icestream.rest.server import HERE
from tests.console.conftest import Pages
from tests.console.world import World, running_world

CHANGES = (
    ("PUT", "pause?connector=sink"),
    ("PUT", "resume?connector=sink"),
    ("PUT", "stop?connector=sink"),
    ("POST", "restart?connector=sink"),
    ("PATCH", "config?connector=sink"),
    ("POST", "create"),
    ("DELETE", "connector?connector=sink"),
    ("PATCH", "offsets?connector=sink"),
    ("DELETE", "offsets?connector=sink"),
    ("PUT", "logger?logger=root"),
)
SEND = """async ([method, path]) => {
  const headers = {"X-Icestream-Console": "1", "Content-Type": "application/json"};
  return (await fetch("api/" + path, {method, headers, body: "{}"})).status; }"""


def at(level: Level) -> AbstractContextManager[World]:
    return running_world(replace(HERE, console=ConsoleConfig(level=level)))


def test_view_has_no_button_and_every_change_by_hand_is_refused(pages: Pages) -> None:
    pages.allow("403")
    with at(Level.VIEW) as world:
        world.add("sink")
        page = pages.open(f"{world.url}#/c/sink")
        expect(page.get_by_role("heading", level=1)).to_have_text("sink")
        for name in ("Pause", "Stop", "Restart", "Edit", "New connector"):
            expect(page.get_by_text(name, exact=True)).to_have_count(0)
        answers = [page.evaluate(SEND, list(change)) for change in CHANGES]
        assert answers == [403] * len(CHANGES)
        page.goto(world.url)
        expect(page.locator("tr.entry")).to_have_count(1)
        expect(page.locator("tr.entry input")).to_have_count(0)


def test_operate_restarts_and_does_not_edit(pages: Pages) -> None:
    pages.allow("403")
    with at(Level.OPERATE) as world:
        world.add("sink")
        page = pages.open(f"{world.url}#/c/sink")
        page.get_by_role("button", name="Restart").click()
        expect(page.locator(".toast")).to_contain_text("sink is RUNNING")
        expect(page.get_by_text("Edit", exact=True)).to_have_count(0)
        assert page.evaluate(SEND, ["PATCH", "config?connector=sink"]) == 403


def test_a_page_of_another_origin_can_neither_read_nor_change(world: World, pages: Pages) -> None:
    pages.allow("CORS|ERR_FAILED|ERR_BLOCKED|blocked|foreign request|policy|405|403")
    world.add("sink")
    with running_world() as other:
        page = pages.open(other.url)
        expect(page.get_by_text("No connectors yet")).to_be_visible()
        attack = """async (url) => {
          const tried = [];
          const headers = {"X-Icestream-Console": "1"};
          for (const options of [{}, {mode: "no-cors"}, {method: "PUT", headers}]) {
            try {
              const answer = await fetch(url, options);
              tried.push(answer.type === "opaque" ? "opaque" : String(answer.status));
            } catch { tried.push("refused"); }
          }
          return tried; }"""
        # Of a page without a policy of its own: ours would not even let it ask.
        blank = pages.open_in(pages.context(bypass_csp=True), other.url)
        for path in ("overview", "events", "pause?connector=sink"):
            assert set(blank.evaluate(attack, f"{world.url}api/{path}")) <= {"refused", "opaque"}
    assert world.service.status("sink").state.value == "RUNNING"


@pytest.mark.parametrize(
    "login", [None, ("alice", "wrong"), ("alice", "secret")], ids=["none", "wrong", "right"]
)
def test_logins(pages: Pages, login: tuple[str, str] | None) -> None:
    pages.allow("401")
    credentials = {"alice": "secret"}
    with running_world(replace(HERE, credentials=credentials)) as world:
        world.add("sink")
        options = {"http_credentials": {"username": login[0], "password": login[1]}} if login else {}
        context = pages.context(**options)
        answer = context.request.get(world.url)
        if login != ("alice", "secret"):
            assert answer.status == 401
            assert answer.headers["www-authenticate"].startswith("Basic ")
            return
        page = pages.open_in(context, world.url)
        expect(page.locator("tr.entry")).to_have_count(1)
        expect(page.locator(".who")).to_contain_text("alice")
