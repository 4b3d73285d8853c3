"""Whether this run is one of the long forms (`pytest -m long`); for tests whose forms differ in size only."""

from __future__ import annotations

from typing import Any

import pytest

_asked = False


def ask(config: pytest.Config) -> None:
    """Called before tests are collected."""
    global _asked
    asked = config.option.markexpr
    _asked = "long" in asked and "not long" not in asked


def is_asked() -> bool:
    return _asked


def sized(short: int, long: int) -> Any:
    """Parametrizes a test by its size: the short form, and the long one beside it."""
    return [pytest.param(short, id="short"), pytest.param(long, id="long", marks=pytest.mark.long)]
