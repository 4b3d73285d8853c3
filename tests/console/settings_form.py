"""The form of a config, as tests find their way in it."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


def setting(page: Page, key: str) -> Locator:
    return page.locator(f'.setting[data-key="{key}"]')


def box(page: Page, key: str) -> Locator:
    return setting(page, key).locator("input, select, textarea").first


def open_groups(page: Page) -> None:
    closed = page.locator("details.section:not([open]) > summary")
    while closed.count():
        closed.first.click()
