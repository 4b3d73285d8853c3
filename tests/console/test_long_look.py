"""A page that stays open while a thousand connectors move: its memory and the worker's stay level."""

from __future__ import annotations

import gc
import time

import psutil
import pytest
from playwright.sync_api import CDPSession, expect

from icestream.api.status import Progress
from tests.console.conftest import Pages
from tests.console.world import running_world

MANY = 1_000
SECONDS = 30 * 60
MOST_GROWTH = 1.5
WARM_UP = 0.2
"""Of the time: caches and rings fill first."""


@pytest.mark.long
def test_memory_stays_level_while_a_thousand_connectors_move(pages: Pages, seconds: int = SECONDS) -> None:
    with running_world() as world:
        managers = [world.add(f"sink-{number:04d}") for number in range(MANY)]
        page = pages.open(world.url)
        expect(page.locator(".live")).to_have_attribute("data-is", "live")
        session = page.context.new_cdp_session(page)
        began, turn = time.monotonic(), 0
        before: tuple[float, float] | None = None
        while time.monotonic() - began < seconds:
            turn += 1
            for manager in managers[turn % 10 :: 10]:
                manager.progress = Progress(lag=turn * 7 % 1_000, rows=turn, batches=turn)
                manager.wake()
            for number in range(turn % 10, MANY, 10):
                world.batch(f"sink-{number:04d}", read=100)
            page.wait_for_timeout(500)
            if before is None and time.monotonic() - began > seconds * WARM_UP:
                before = used(session)
        after = used(session)
        assert before is not None
        expect(page.locator(".live")).to_have_attribute("data-is", "live")
        assert page.locator("tr.entry").count() <= 60
        print(f"page {before[0]:,.0f} → {after[0]:,.0f}, worker {before[1]:,.0f} → {after[1]:,.0f} bytes")
        assert after[0] < before[0] * MOST_GROWTH
        assert after[1] < before[1] * MOST_GROWTH


def used(session: CDPSession) -> tuple[float, float]:
    """Bytes of the page's heap after a collection, and of this process, which is the worker."""
    session.send("HeapProfiler.collectGarbage")
    gc.collect()
    return session.send("Runtime.getHeapUsage")["usedSize"], psutil.Process().memory_info().rss
