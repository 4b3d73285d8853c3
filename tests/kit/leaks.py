"""Fails the test that leaves behind a thread, a child process, an event loop, a log handler or a variable.

Compared is what there is before the first and after the last fixture of a test. What a fixture of a larger
scope starts is its own, also if a test is the first to ask for it, and so are the threads that its threads
start: the fixture must have ended them when it has ended. What is started later, in the middle of a test that
is not the last to use it, is started within `shared`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeAlias

import psutil
import pytest

_PATIENCE = 30.0
"""Seconds for what is about to end when a test does."""
_STDLIB: Final = f"{sysconfig.get_path('stdlib')}/"
_OF_PYTEST: Final = "PYTEST_CURRENT_TEST"


@dataclass(frozen=True)
class Process:
    """A child."""

    pid: int


@dataclass(frozen=True)
class Handler:
    logger: str
    handler: logging.Handler


@dataclass(frozen=True)
class Variable:
    name: str
    value: str | None
    """None: it is not there any more."""


Thing: TypeAlias = threading.Thread | asyncio.AbstractEventLoop | Process | Handler | Variable


def things() -> set[Thing]:
    """What there is now."""
    return {*_threads(), *_loops(), *_children(), *_handlers(), *_variables()}


def _threads() -> Iterator[Thing]:
    # A dummy stands for a thread that is not Python's; nothing says when that has ended.
    own = {it for it in threading.enumerate() if not isinstance(it, threading._DummyThread)}
    return iter(own - _pool_of_pyiceberg())


def _pool_of_pyiceberg() -> set[threading.Thread]:
    """It has one for the process, whose threads begin when there is work for them."""
    module = sys.modules.get("pyiceberg.utils.concurrent")
    pool = module.ExecutorFactory._instance if module else None
    return pool._threads if pool else set()


def _loops() -> Iterator[Thing]:
    try:
        yield asyncio.get_running_loop()
    except RuntimeError:
        return


def _children() -> set[Process]:
    # Python's own, which cleans up when this process has ended.
    return _all_children() - {Process(getattr(resource_tracker._resource_tracker, "_pid", None) or 0)}


def _all_children() -> set[Process]:
    try:
        # psutil looks at every process of the machine: 20 ms.
        texts = [(it / "children").read_text() for it in Path("/proc/self/task").iterdir()]
        return {Process(int(pid)) for text in texts for pid in text.split()}
    except OSError:
        # Another system, or a thread that has just ended.
        return {Process(child.pid) for child in psutil.Process().children()}


def _handlers() -> Iterator[Thing]:
    for logger in (logging.getLogger(), *logging.Logger.manager.loggerDict.values()):
        for handler in getattr(logger, "handlers", ()):
            # One that does nothing comes with the import of a library; py4j has a class of its own for it.
            if not (is_of_pytest(handler) or type(handler).__name__ == "NullHandler"):
                yield Handler(getattr(logger, "name", ""), handler)


def is_of_pytest(handler: logging.Handler) -> bool:
    return type(handler).__module__.startswith("_pytest.")


def _variables() -> Iterator[Thing]:
    return (Variable(*it) for it in os.environ.items() if it[0] != _OF_PYTEST)


def _since(before: set[Thing]) -> set[Thing]:
    now = things()
    names = {it.name for it in now if isinstance(it, Variable)}
    gone = {it.name for it in before if isinstance(it, Variable)} - names
    return now - before | {Variable(name, None) for name in gone}


def _once_ended(left: Callable[[], set[Thing]]) -> set[Thing]:
    deadline = time.monotonic() + _PATIENCE
    while any(isinstance(it, (threading.Thread, Process)) for it in left()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left()


# -- whose they are --


_shared: set[Thing] = set()
"""What fixtures of larger scopes and `shared` have started."""
_within: list[set[Thing]] = [set()]
"""The same, of each block of `shared` that is open."""
_start = threading.Thread.start


def _noting_start(thread: threading.Thread) -> None:
    vars(thread)["started_by"] = threading.current_thread()
    vars(thread)["started_at"] = _place(sys._getframe(1))
    _start(thread)


def _starter(thread: threading.Thread) -> threading.Thread:
    # What is older than this module, or was not started by Python, is there before any test.
    return vars(thread).get("started_by", threading.main_thread())


@contextmanager
def shared() -> Iterator[set[Thing]]:
    """What begins in this block goes on after the test, for others to use."""
    before, own = things(), set[Thing]()
    _within.append(set())
    try:
        yield own
    finally:
        inner, all_ = _within.pop(), _since(before)
        # What a fixture asked other fixtures for is theirs.
        own |= all_ - inner
        _shared.update(all_)
        _within[-1].update(all_)


def _left_since(before: set[Thing]) -> set[Thing]:
    return {it for it in _since(before) - _shared if not _is_of_shared(it, before)}


def _is_of_shared(thing: Thing, before: set[Thing]) -> bool:
    """Whether it is a thread that one from before the test has led to; the main thread leads to all."""
    while isinstance(thing, threading.Thread) and thing is not threading.main_thread():
        if thing in before or thing in _shared:
            return True
        thing = _starter(thing)
    return False


# -- what is said of them --


def _fail(whose: str, left: set[Thing]) -> None:
    lines = sorted(_told(it) for it in left)
    pytest.fail(f"{whose} left behind:\n  " + "\n  ".join(lines), pytrace=False)


def _told(thing: Thing) -> str:
    match thing:
        case threading.Thread():
            kind = "daemon" if thing.daemon else "not a daemon"
            started = f"started by '{_starter(thing).name}' at {vars(thing).get('started_at')}"
            now = _place(sys._current_frames().get(thing.ident or 0))
            return f"the thread '{thing.name}' ({kind}, {started}), now at {now}"
        case Process():
            return f"the process {_process(thing.pid)}"
        case Handler():
            return f"the log handler {thing.handler} of '{thing.logger}'"
        case Variable():
            how = "removed" if thing.value is None else f"'{thing.value}'"
            return f"the variable {thing.name}, which is {how}"
        case _:
            return f"the running event loop {thing}"


def _place(frame: FrameType | None) -> str:
    """The innermost call of code that is not the standard library's."""
    while frame is not None and frame.f_back and frame.f_code.co_filename.startswith(_STDLIB):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "its end"


def _process(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return f"{pid} ({process.name()}), which ended and was not waited for"
        return f"{pid} ({' '.join(process.cmdline())[:200]}), which runs"
    except psutil.NoSuchProcess:
        return f"{pid}, which has just ended"


def _remove(left: set[Thing], before: set[Thing]) -> None:
    """What can be removed, so that the tests that follow do not fail for it."""
    values = {it.name: it.value for it in before if isinstance(it, Variable)}
    for thing in left:
        if isinstance(thing, Handler):
            logging.getLogger(thing.logger).removeHandler(thing.handler)
        elif isinstance(thing, Variable):
            os.environ.pop(thing.name, None)
            if (value := values.get(thing.name)) is not None:
                os.environ[thing.name] = value


# -- pytest --


def pytest_configure() -> None:
    threading.Thread.start = _noting_start  # type: ignore[method-assign]


def pytest_unconfigure() -> None:
    threading.Thread.start = _start  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
    if fixturedef.scope == "function":
        return (yield)
    with shared() as own:
        # What is there for the whole run may end with the process, as Spark does.
        if fixturedef.scope != "session":
            # The first to be added is the last to be called.
            fixturedef.addfinalizer(lambda: _ended(fixturedef.argname, own))
        return (yield)


def _ended(fixture: str, own: set[Thing]) -> None:
    if left := _once_ended(lambda: own & things()):
        _fail(f"the fixture '{fixture}'", left)


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    before = things()
    yield
    if left := _once_ended(lambda: _left_since(before)):
        _remove(left, before)
        _fail("this test", left)
