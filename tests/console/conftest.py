"""A browser for all tests of the console, and pages that watch themselves.

Playwright drives the Chromium that is installed. A page fails its test if it logs an error, breaks its own
policy, or asks another server for anything: in every test, whatever it is about.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pytest

from tests.console.world import World, running_world
from tests.kit.programs import require_program

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

_PATIENCE_MS: Final = 60_000
_TELL_VIOLATIONS: Final = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
"""


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Of the package, not of the run: while Playwright lives, nobody else may run an event loop here."""
    chromium = require_program("chromium")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=_PATIENCE_MS)
    # Chromium's sandbox does not start for root, as whom CI runs.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield started
        started.close()


@dataclass
class Pages:
    """Opens pages, and keeps what went wrong in them."""

    browser: Browser
    problems: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)
    """Patterns of errors that a test brings about."""
    _contexts: list[BrowserContext] = field(default_factory=list)

    def context(self, **options: Any) -> BrowserContext:
        made = self.browser.new_context(
            **{"viewport": {"width": 1280, "height": 800}, "locale": "en-US", **options}
        )
        made.set_default_timeout(_PATIENCE_MS)
        made.add_init_script(_TELL_VIOLATIONS)
        self._contexts.append(made)
        return made

    def open(self, url: str, **options: Any) -> Page:
        return self.open_in(self.context(**options), url)

    def open_in(self, context: BrowserContext, url: str) -> Page:
        page = context.new_page()
        own = urlsplit(url).netloc
        page.on("console", lambda message: self._note(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self._note(f"{error}"))
        page.on("dialog", lambda dialog: (self._note(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on(
            "request",
            lambda request: (
                None
                if urlsplit(request.url).netloc == own or request.url.startswith(("data:", "blob:"))
                else self._note(f"foreign request: {request.url}")
            ),
        )
        page.goto(url)
        return page

    def allow(self, pattern: str) -> None:
        self.allowed.append(pattern)

    def close(self) -> None:
        for context in self._contexts:
            context.close()

    def _note(self, text: str) -> None:
        self.problems.append(text)

    def unexpected(self) -> list[str]:
        return [one for one in self.problems if not any(re.search(it, one) for it in self.allowed)]


@pytest.fixture
def pages(browser: Browser) -> Iterator[Pages]:
    opened = Pages(browser)
    yield opened
    opened.close()
    assert opened.unexpected() == []


@pytest.fixture(scope="package")
def shared_world() -> Iterator[World]:
    with running_world() as running:
        yield running


@pytest.fixture
def world(shared_world: World) -> Iterator[World]:
    """One worker for all tests that only use it; each finds it empty."""
    shared_world.empty()
    yield shared_world
    shared_world.empty()
