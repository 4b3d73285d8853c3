"""Names, reasons and texts of records that attack: on every page they are text."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from icestream.api.history import Outcome, PartitionLag
from icestream.api.status import Progress
from tests.console.conftest import Pages
from tests.console.world import World

IMAGE = '"><img src=x onerror=alert(1)><script>alert(2)</script>'
NAMES = (
    "../x",
    "a/b",
    "..",
    "%2e%2e",
    IMAGE,
    "javascript:alert(1)",
    "abc\u202egnp.exe",
    "zero\u200bwidth",
    "#/workers?x=1&y=2",
    "${7*7} {{7*7}}",
    "é" * 1_000,
    "x" * 4_000,
)
SOME = ("../x", IMAGE, "abc\u202egnp.exe", "x" * 4_000)
TABS = ("", "/batches", "/commits", "/letters", "/offsets", "/config", "/events")


def told(world: World, name: str) -> None:
    """Let everything that can be told of a connector attack."""
    manager = world.managers.latest(name)
    world.batch(name, read=5, table=IMAGE)
    world.batch(name, outcome=Outcome.FAILED, note=IMAGE)
    world.event(name, "config", IMAGE, user=IMAGE)
    world.event(name, IMAGE, IMAGE)
    lag = PartitionLag(IMAGE, 0, 2**60, 2**60 + 7, world.clock())
    manager.advance(Progress(lag=7, rows=2**53, warnings=(IMAGE,), topics=(IMAGE,), partitions=(lag,)))
    manager.fail(IMAGE)


@pytest.mark.parametrize(
    "name",
    [*SOME, *(pytest.param(name, marks=pytest.mark.long) for name in NAMES if name not in SOME)],
    ids=lambda name: name[:12],
)
def test_a_hostile_name_is_text_on_every_page(world: World, pages: Pages, name: str) -> None:
    pages.allow("404|400")  # jobs that only pretend have no dead letters and no offsets
    world.add(name, {"topics": "t", "iceberg.tables": "db.t", "iceberg.catalog.uri": IMAGE})
    told(world, name)
    page = pages.open(world.url)
    expect(page.locator("tr.entry")).to_have_count(1)
    page.locator("tr.entry .opener").click()
    expect(page.locator("tr.more .facts")).to_be_visible()
    page.locator("tr.entry .name").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.url.partition("#")[2].startswith("/c/")
    for tab in TABS:
        page.goto(f"{world.url}#/c/{quote(name, safe='')}{tab}")
        expect(page.locator(".tabs a[aria-current]")).to_be_visible()
        expect(page.locator("main .nothing .spin").first).not_to_be_attached()
        assert page.locator("main img, main script, main iframe").count() == 0
    for other in ("#/workers", "#/plugins", "#/letters"):
        page.goto(world.url + other)
        expect(page.locator("main :is(h1, h2)").first).to_be_visible()
    assert page.locator("img, main script, iframe").count() == 0


def test_what_cannot_be_seen_is_written_as_an_escape(world: World, pages: Pages) -> None:
    world.add("abc\u202egnp.exe")
    page = pages.open(world.url)
    expect(page.locator("tr.entry .name")).to_have_text("abc\\u{202e}gnp.exe")


def test_hostile_addresses_are_no_code(world: World, pages: Pages) -> None:
    pages.allow("404|400")
    for hash_ in (
        f"#/c/{quote(IMAGE)}",
        f"#{IMAGE}",
        "#/c/%E0%A4%A",
        f"#/connectors?q={quote(IMAGE)}&sort=__proto__",
    ):
        page = pages.open(world.url + hash_)
        expect(page.locator("main :is(h1, h2)").first).to_be_visible()
        assert page.locator("img").count() == 0
