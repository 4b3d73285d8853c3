"""A pytest plugin: tests are collected without the garbage collector, which would look through all imports
again and again and find nothing. It does not look through them later, either."""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
