"""What a worker and the process of a job say to each other: JSON messages over a socket that only they have.

`child_process` has the worker's end, `job_process` the job's. Config and secrets go this way and no other:
arguments and environment of a process can be seen by others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import enum
import functools
import json
import logging
import socket
import struct
import threading
import types
import typing
from collections.abc import Mapping
from typing import Any, Final

from icestream.api import errors
from icestream.api.errors import CommitConflict, ConfigError, FatalError, IcestreamError, Problem
from icestream.traces import shown, shown_trace, with_trace

_HEAD: Final = struct.Struct("!I")
_MOST_BYTES: Final = 64 * 2**20
"""A config has at most a megabyte; whoever says more is not one of us."""
_SEND_SECONDS: Final = 60

Message = dict[str, Any]


class Channel:
    """One end. `send` may be called from any thread, `receive` from one."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._sending = threading.Lock()
        # Of sending only: who reads waits for as long as it takes.
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", _SEND_SECONDS, 0))

    def send(self, message: Message, *, waits: bool = True) -> bool:
        """Whether it is on its way; False if nobody reads there, or somebody else sends and this one does not
        wait for that."""
        content = json.dumps(message).encode()
        if not self._sending.acquire(blocking=waits):
            return False
        try:
            self._end.sendall(_HEAD.pack(len(content)) + content)
        except OSError:
            # Half a message may be on its way: nothing that follows could be understood.
            self.hang_up()
            return False
        finally:
            self._sending.release()
        return True

    def receive(self) -> Message | None:
        """The next message; None when the other end is closed."""
        head = self._read(_HEAD.size)
        size = _HEAD.unpack(head)[0] if head is not None else _MOST_BYTES + 1
        content = self._read(size) if size <= _MOST_BYTES else None
        if content is None:
            return None
        message: Message = json.loads(content)
        return message

    def _read(self, size: int) -> bytes | None:
        parts: list[bytes] = []
        while size > 0:
            try:
                part = self._end.recv(min(size, 2**20))
            except OSError:
                return None
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def hang_up(self) -> None:
        """Both ends see that nothing more comes, also whoever waits for a message in another thread."""
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.hang_up()
        self._end.close()


# -- facts --


def plain(value: Any) -> Any:
    """A fact of `api.status` as JSON can have it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


def fact(kind: Any, value: Any) -> Any:
    """The fact of this type that `plain` was given."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if value is None:
        return None
    if origin in (typing.Union, types.UnionType):
        return fact(next(part for part in parts if part is not types.NoneType), value)
    if dataclasses.is_dataclass(kind):
        hints = _hints(typing.cast("type", kind))
        return kind(**{name: fact(hints[name], item) for name, item in value.items()})  # type: ignore[operator]
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(value)
    if kind is dt.datetime:
        return dt.datetime.fromisoformat(value)
    if origin is tuple:
        return tuple(fact(parts[0], item) for item in value)
    if isinstance(value, dict) and len(parts) == 2:
        return {key: fact(parts[1], item) for key, item in value.items()}
    return value


@functools.lru_cache(maxsize=32)
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


# -- errors --


def plain_error(error: Exception) -> Message:
    """What the worker needs to raise it again: its class decides what happens to the job."""
    # A connector may have a class of its own below one of ours, which only that one decides on.
    kind = next((one for one in type(error).__mro__ if hasattr(errors, one.__name__)), type(error))
    said: Message = {"class": kind.__name__, "message": str(error), "trace": shown_trace(error)}
    if isinstance(error, ConfigError):
        said["problems"] = [[problem.key, problem.message] for problem in error.problems]
    if isinstance(error, CommitConflict):
        said["certain"] = error.certain
    if not isinstance(error, IcestreamError):
        said |= {"class": FatalError.__name__, "message": f"{type(error).__name__}: {shown(error)}"}
    return said


def raised_error(said: Message) -> IcestreamError:
    """The error that the job's process had, with the trace that it had there."""
    kind = getattr(errors, said["class"], FatalError)
    if not (isinstance(kind, type) and issubclass(kind, IcestreamError)):
        kind = FatalError
    if issubclass(kind, ConfigError):
        error: IcestreamError = kind([Problem(key, text) for key, text in said["problems"]])
    elif issubclass(kind, CommitConflict):
        error = kind(said["message"], certain=said["certain"])
    else:
        error = kind(said["message"])
    return with_trace(error, said["trace"])


# -- log levels --


def set_levels() -> dict[str, int]:
    """The levels that are set in this process, by logger; what has none has that of its parent."""
    known = logging.root.manager.loggerDict.copy().items()
    levels = {name: one.level for name, one in known if isinstance(one, logging.Logger) and one.level}
    return {**levels, "": logging.root.level}


def follow_levels(levels: Mapping[str, int]) -> None:
    for name, level in levels.items():
        logging.getLogger(name or None).setLevel(level)
