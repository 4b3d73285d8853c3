"""What people see of an error that a library raised over a file or an answer that they may not see."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.serializers import FromInputFile

from icestream.api.errors import SinkUnavailable
from icestream.rest.errors import error_from
from icestream.traces import shown, shown_trace


def _caught(call: Callable[[], object]) -> Exception:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("it did not fail")


@pytest.fixture
def metadata(tmp_path: Path) -> Callable[[], object]:
    """Reads a file of the worker for the metadata of a table, as a hostile catalog tells it to."""
    file = tmp_path / "secrets"
    file.write_text("root:hush-hush:0:0")
    return lambda: FromInputFile.table_metadata(PyArrowFileIO().new_input(str(file)))


def test_no_file_is_told_by_a_library(metadata: Callable[[], object]) -> None:
    def wrapped() -> None:
        try:
            metadata()
        except Exception as error:
            raise SinkUnavailable("loading table ns.t") from error

    for call in (metadata, wrapped):
        error = _caught(call)
        assert "hush" in "".join(traceback.format_exception(error))
        trace = shown_trace(error)
        assert "hush" not in trace + shown(error)
        assert "ValidationError: (its words are in the log of the worker)" in trace
        assert "table_metadata" in trace
    assert shown_trace(_caught(wrapped)).endswith("SinkUnavailable: loading table ns.t\n")
    assert "hush" not in str(error_from(_caught(metadata), "/connectors/c/offsets"))


def test_what_our_own_code_says_is_told_as_python_tells_it() -> None:
    def fail() -> None:
        try:
            raise KeyError("inner")
        except KeyError:
            raise ValueError("outer") from None

    def again() -> None:
        try:
            fail()
        except ValueError as error:
            raise SinkUnavailable("both") from error

    for call in (fail, again):
        error = _caught(call)
        assert shown_trace(error) == "".join(traceback.format_exception(error))
    assert shown(_caught(fail)) == "outer"
    assert shown(RuntimeError()) == "RuntimeError"
