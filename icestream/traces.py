"""Errors as those may see them who may see a connector, and may not see all that its worker reaches.

A catalog says which file holds a table, so whoever brings a catalog has the worker read any file, or ask any
host, and libraries repeat in their errors what they found there. Used for the status of jobs and by REST.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar

from icestream.api.errors import IcestreamError

_E = TypeVar("_E", bound=IcestreamError)

_OURS: Final = str(Path(__file__).parent) + os.sep
_LIBRARIES: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_SPARK: Final = (f"{os.sep}pyspark{os.sep}", f"{os.sep}py4j{os.sep}")
"""What these tell is what our own code in Spark's tasks said, or Spark itself."""
_ELSEWHERE: Final = "trace_of_another_process"
_LEFT_OUT: Final = "(its words are in the log of the worker)"
_CAUSE: Final = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT: Final = "\nDuring handling of the above exception, another exception occurred:\n\n"


def shown(error: BaseException) -> str:
    """Its message, unless a library wrote it."""
    if _is_of_a_library(error):
        return f"{type(error).__name__} {_LEFT_OUT}"
    return str(error) or type(error).__name__


def shown_trace(error: BaseException) -> str:
    """As Python prints it, without the messages that libraries wrote."""
    if (elsewhere := vars(error).get(_ELSEWHERE)) is not None:
        return str(elsewhere)
    return "".join(_parts(error, set()))


def with_trace(error: _E, trace: str) -> _E:
    """The error, shown with the trace that it had in another process."""
    vars(error)[_ELSEWHERE] = trace
    return error


def _parts(error: BaseException, seen: set[int]) -> Iterator[str]:
    seen.add(id(error))
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None and id(before) not in seen:
        yield from _parts(before, seen)
        yield _CAUSE if error.__cause__ is not None else _CONTEXT
    if error.__traceback__ is not None:
        yield "Traceback (most recent call last):\n"
        yield from traceback.format_tb(error.__traceback__)
    if _is_of_a_library(error):
        yield f"{type(error).__module__}.{type(error).__qualname__}: {_LEFT_OUT}\n"
    else:
        yield from traceback.format_exception_only(error)


def _is_of_a_library(error: BaseException) -> bool:
    if isinstance(error, IcestreamError) or error.__traceback__ is None:
        return False
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    file = frame.f_code.co_filename
    if file.startswith(_OURS) or any(part in file for part in _SPARK):
        return False
    # Parts of libraries that were compiled have paths of their own, which are relative.
    return any(part in file for part in _LIBRARIES) or not (os.path.isabs(file) or file.startswith("<"))
