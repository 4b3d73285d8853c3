"""The page of one connector."""

from __future__ import annotations

from dataclasses import replace

from playwright.sync_api import expect

from icestream.api.history import Outcome
from icestream.api.status import Progress
from tests.console.conftest import Pages
from tests.console.world import World, partitions


def test_lag_books_batches_and_commits_are_shown(world: World, pages: Pages) -> None:
    now = world.clock()
    parts = partitions("apilogs", (10, 2_000, 300), now)
    world.add(
        "sink-apilogs",
        progress=Progress(
            lag=2_310, rows=119_997, rejected=3, filtered=40, partitions=parts, warnings=("x has no effect",)
        ),
    )
    world.live_through("sink-apilogs", "streaming.apilogs", minutes=20)
    last = world.batch("sink-apilogs", read=40_000, table="streaming.apilogs")
    page = pages.open(f"{world.url}#/c/sink-apilogs")
    lag = page.locator("section", has_text="Lag by partition").locator("tbody tr")
    expect(lag).to_have_count(3)
    expect(lag.first).to_contain_text("apilogs-1")
    expect(lag.first).to_contain_text("2,000")
    books = page.get_by_role("region", name="Books")
    for number in ("120,040", "119,997", "3", "40"):
        expect(books).to_contain_text(number)
    expect(books).to_contain_text("balanced")
    batches = page.get_by_role("region", name="Batches")
    expect(batches.locator("tbody tr").first).to_contain_text("committed")
    expect(page.get_by_role("region", name="Commits")).to_contain_text(last.targets[0].id)
    expect(page.get_by_text("x has no effect")).to_be_visible()
    expect(page.locator(".uplot")).to_have_count(3)
    page.get_by_role("button", name="Lag as table").click()
    expect(page.get_by_role("region", name="Lag, as table").locator("tbody tr").nth(30)).to_be_attached()


def test_a_broken_sum_is_shown_as_broken(world: World, pages: Pages) -> None:
    world.add("sink-apilogs", progress=Progress(rows=5))
    good = world.batch("sink-apilogs", read=10)
    world.history.batch("sink-apilogs", replace(good, id="other", written=9))
    page = pages.open(f"{world.url}#/c/sink-apilogs")
    expect(page.get_by_role("region", name="Books")).to_contain_text("1 batch does not add up")


def test_a_batch_appears_while_it_is_under_way_and_then_with_its_stages(world: World, pages: Pages) -> None:
    world.add("sink-apilogs")
    page = pages.open(f"{world.url}#/c/sink-apilogs/batches")
    expect(page.get_by_text("No batches")).to_be_visible()
    world.batch("sink-apilogs", id="one", outcome=Outcome.UNDER_WAY, read=7)
    row = page.get_by_role("region", name="Batches").locator("tbody tr")
    expect(row).to_contain_text("under way")
    ended = world.batch("sink-apilogs", id="one", read=7)
    expect(row).to_contain_text("committed")
    expect(row).to_have_count(1)
    row.get_by_role("button").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(ended.targets[0].id)
    for stage in ("plan", "queue", "read", "convert", "transform", "stage", "commit", "publish"):
        expect(dialog.get_by_role("cell", name=stage, exact=True)).to_be_visible()


def test_what_is_away_is_waited_for_and_comes_back(world: World, pages: Pages) -> None:
    manager = world.add("sink-apilogs")
    page = pages.open(f"{world.url}#/c/sink-apilogs")
    expect(page.locator(".subline .state")).to_have_text("ok")
    manager.be_away("the catalog http://cat:8181 does not answer")
    expect(page.locator(".subline .state")).to_have_text("waiting")
    expect(page.locator(".note").first).to_contain_text("the catalog http://cat:8181 does not answer")
    manager.be_back()
    expect(page.locator(".subline .state")).to_have_text("ok")


def test_pause_and_resume_follow_to_the_state(world: World, pages: Pages) -> None:
    world.add("sink-apilogs")
    page = pages.open(f"{world.url}#/c/sink-apilogs")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".toast")).to_contain_text("sink-apilogs is PAUSED")
    expect(page.locator(".subline")).to_contain_text("PAUSED")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".subline")).to_contain_text("RUNNING")


def test_events_tell_who_did_what(world: World, pages: Pages) -> None:
    world.add("sink-apilogs")
    world.event("sink-apilogs", "config", "changed tasks.max", user="alice")
    page = pages.open(f"{world.url}#/c/sink-apilogs/events")
    row = page.get_by_role("region", name="Events").locator("tr", has_text="changed tasks.max")
    expect(row).to_contain_text("alice")
    world.event("sink-apilogs", "replay", "sent 3 dead letters back")
    expect(page.get_by_text("sent 3 dead letters back")).to_be_visible()
    page.get_by_label("Kind").select_option("config")
    expect(page.get_by_text("sent 3 dead letters back")).to_have_count(0)
    expect(row).to_have_count(1)


def test_a_connector_that_is_not_there_says_so(world: World, pages: Pages) -> None:
    pages.allow("404")
    page = pages.open(f"{world.url}#/c/gone")
    expect(page.get_by_text("There is no such connector")).to_be_visible()
