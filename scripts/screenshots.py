"""`make screenshots`: the pictures of the console in docs/images, by a browser over a made-up worker.

The clock stands still and the seed is fixed, so that a picture changes only if the console does. The letters
are those of this machine: with the font Inter (on Debian: fonts-inter) they come out as in the repository.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unittest import mock

from tests.console.made_up_queues import MadeUpDesk, MadeUpOffsets
from tests.console.scenes import busy_worker
from tests.console.settings_form import box
from tests.console.world import World, running_world

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_IMAGES: Final = Path(__file__).parents[1] / "docs" / "images"
_NOW: Final = 1_794_824_047.0
"""2026-11-16T10:14:07Z."""
_MOST_BYTES: Final = 200_000
_THEMES: Final = ("light", "dark")


def _overview(page: Page) -> None:
    page.locator("tr.entry").first.wait_for()


def _connector(page: Page) -> None:
    page.locator(".uplot").nth(2).wait_for()
    page.get_by_text("committed").first.wait_for()


def _config(page: Page) -> None:
    page.get_by_label("Another key").fill("iceberg.tables.auto-creat-enabled")
    page.get_by_role("button", name="Add key").click()
    box(page, "iceberg.tables.auto-creat-enabled").fill("true")
    page.get_by_role("button", name="instead").wait_for()
    page.evaluate("scrollTo(0, 0)")


def _letters(page: Page) -> None:
    page.get_by_label("Groups of dead letters").get_by_role("button").first.click()
    page.get_by_label("Records of the group").get_by_role("button").first.click()
    page.get_by_role("dialog").locator(".payload").first.wait_for()


def _offsets(page: Page) -> None:
    page.get_by_role("button", name="Stop it").click()
    for number, offset in ((0, "8110000"), (2, "8110700")):
        page.get_by_label(f"Move shop-orders-{number} to").fill(offset)
    page.get_by_role("button", name="Preview 2 moves").click()
    page.locator(".toast button").click()
    page.get_by_role("button", name="Move 2 partitions").scroll_into_view_if_needed()


PICTURES: Final[dict[str, tuple[str, Callable[[Page], None], Sequence[str]]]] = {
    "console-overview": ("", _overview, _THEMES),
    "console-connector": ("#/c/iceberg-sink-apilogs", _connector, _THEMES),
    "console-config": ("#/c/shop-orders/config", _config, ("light",)),
    "console-letters": ("#/c/payments-ledger/letters", _letters, ("light",)),
    "console-offsets": ("#/c/shop-orders/offsets", _offsets, ("light",)),
}
"""Name → address, what must be done or there before the picture is taken, and themes. In this order: for the
last one the connector is stopped."""


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("make screenshots needs Chromium; on Debian: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    _IMAGES.mkdir(parents=True, exist_ok=True)
    with (
        mock.patch("time.time", lambda: _NOW),
        mock.patch("time.time_ns", lambda: int(_NOW * 1e9)),
        running_world(
            worker_id="10.0.0.1:8083", dead_letters=MadeUpDesk(int(_NOW * 1000)), offsets=MadeUpOffsets()
        ) as world,
        sync_playwright() as playwright,
    ):
        busy_worker(world)
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        for name, (address, is_ready, themes) in PICTURES.items():
            for theme in themes:
                _take(browser, world, f"{name}-{theme}", address, theme, is_ready)
        browser.close()


def _take(
    browser: Browser, world: World, name: str, address: str, theme: str, is_ready: Callable[[Page], None]
) -> None:
    context = browser.new_context(
        viewport={"width": 1280, "height": 800},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
        locale="en-US",
        timezone_id="UTC",
    )
    page = context.new_page()
    page.clock.set_fixed_time(dt.datetime.fromtimestamp(_NOW, dt.UTC))
    page.goto(world.url + address)
    is_ready(page)
    page.wait_for_timeout(1500)
    path = _IMAGES / f"{name}.png"
    page.screenshot(path=path)
    context.close()
    size = path.stat().st_size
    if size > _MOST_BYTES:
        sys.exit(f"{path.name} has {size:,} bytes; at most {_MOST_BYTES:,} are kept in the repository")
    print(f"{path.name}: {size:,} bytes")


if __name__ == "__main__":
    main()
