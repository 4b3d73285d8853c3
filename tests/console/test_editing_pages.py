"""The pages that change something, as axe-core and hostile people look at them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from icestream.api.offset_admin import OffsetEntry, PartitionPosition
from icestream.api.offsets import Partition
from icestream.cluster.inspection import Inspection
from icestream.jobs.letters.desk import LetterPage, ReplayPlan, ReplayProgress
from icestream.jobs.letters.replay import Request, Selection
from icestream.jobs.publishing.dead_letters import DeadLetter, DeadLetterFilter
from tests.console.conftest import Pages
from tests.console.settings_form import box, setting
from tests.console.world import World

HOSTILE = "<img src=x onerror=alert(1)> ../‮ javascript:alert(2)"


class Desk:
    """One dead letter that means harm in all of its parts."""

    letters = (
        DeadLetter(
            Partition("q", 0),
            0,
            {
                "topic": HOSTILE,
                "partition": "0",
                "offset": "7",
                "stage": HOSTILE,
                "exception.message": HOSTILE,
            },
            HOSTILE.encode(),
            b'{"x": "' + HOSTILE.encode() + b'"}',
            [(HOSTILE, HOSTILE.encode())],
            1_700_000_000_000,
        ),
    )

    def page(self, name: str, config: Any, wanted: DeadLetterFilter, cursor: str | None) -> LetterPage:
        return LetterPage(HOSTILE, [(one, False) for one in self.letters], 1, None, False)

    def letter(self, name: str, config: Any, partition: int, offset: int) -> tuple[DeadLetter, bool]:
        return self.letters[0], False

    def plan(self, name: str, config: Any, request: Request) -> ReplayPlan:
        return ReplayPlan(Selection(1), [HOSTILE], HOSTILE)

    def progress(self, name: str) -> ReplayProgress | None:
        return None


class Offsets:
    def read(self, name: str, config: Any) -> list[OffsetEntry]:
        return []

    def positions(self, name: str, config: Any, entries: Any = ()) -> list[PartitionPosition]:
        return [PartitionPosition(HOSTILE, 0, 0, 2**60, 60, 60, 60, ((0, 60),))]


@pytest.fixture
def hostile(world: World) -> Iterator[World]:
    before, extras = world.service.inspection, world.service._extras
    world.service.inspection = Inspection(before.config_of, Offsets(), Desk(), None)  # type: ignore[arg-type]
    object.__setattr__(extras, "offsets", Offsets())
    world.add(HOSTILE, {HOSTILE: HOSTILE, "iceberg.catalog.password": "open-sesame"})
    yield world
    world.service.inspection = before
    object.__setattr__(extras, "offsets", None)


def faults(page: Page) -> list[str]:
    """What axe-core finds, in both palettes."""
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for one in Axe().run(page).response["violations"]:
            found.append(f"{scheme}: {one['id']} {[node['html'][:200] for node in one['nodes']]}")
    return found


def test_axe_finds_nothing_and_what_is_hostile_stays_text(hostile: World, pages: Pages) -> None:
    page = pages.open(hostile.url, bypass_csp=True)
    expect(page.locator("tr.entry")).to_have_count(1)
    name = page.evaluate("name => encodeURIComponent(name)", HOSTILE)

    page.goto(f"{hostile.url}#/c/{name}/config")
    expect(setting(page, "connector.class")).to_be_visible()
    page.get_by_label("Another key").fill("iceberg.tabels")
    page.get_by_role("button", name="Add key").click()
    box(page, "iceberg.tabels").fill(HOSTILE)
    expect(setting(page, "iceberg.tabels")).to_contain_text("did you mean")
    assert faults(page) == []
    page.get_by_role("button", name="Save 1 change…").click()
    expect(page.get_by_role("dialog")).to_contain_text("iceberg.tabels")
    assert faults(page) == []
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()

    page.goto(f"{hostile.url}#/c/{name}/letters")
    page.get_by_label("Groups of dead letters").get_by_role("button").first.click()
    expect(page.get_by_label("Records of the group")).to_be_visible()
    assert faults(page) == []
    page.get_by_label("Records of the group").get_by_role("button").first.click()
    expect(page.get_by_role("dialog").locator(".payload")).to_have_count(2)
    assert faults(page) == []
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Replay all…").click()
    expect(page.get_by_role("dialog").get_by_role("button", name="Send")).to_be_disabled()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()

    hostile.service.stop(HOSTILE)
    page.goto(f"{hostile.url}#/c/{name}/offsets")
    page.get_by_label("Move ").fill("30")
    page.get_by_role("button", name="Preview 1 move").click()
    expect(page.get_by_label("Preview", exact=True)).to_contain_text("30 records will be read again")
    assert faults(page) == []

    page.goto(f"{hostile.url}#/new?copy={name}")
    expect(page.get_by_text("Secrets are not copied")).to_be_visible()
    assert faults(page) == []
    page.goto(f"{hostile.url}#/letters")
    expect(page.get_by_role("heading", name="Dead letters")).to_be_visible()
    assert faults(page) == []
    assert page.locator("img, [onerror]").count() == 0
