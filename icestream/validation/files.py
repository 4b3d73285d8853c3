"""Reads schemas from files of the worker, with the files that they refer to; used by `settings`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from icestream.validation.schema import BadSchema, Source, checked

_LARGEST: Final = 10_000_000


def source_in(path: str) -> Source:
    """The schema in a file, checked; raises BadSchema."""
    file = Path(path).expanduser().absolute()
    others: dict[str, str] = {}

    def retrieve(address: str) -> Any:
        others[address] = _referred(address)
        return json.loads(others[address])

    text = _read(file)
    checked(text, file.as_uri(), retrieve)
    return Source(text, file.as_uri(), tuple(others.items()))


def _referred(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme != "file":
        raise LookupError("nothing is fetched, so put it into a file beside this one")
    try:
        text = _read(Path(unquote(parts.path)))
        json.loads(text)
    except json.JSONDecodeError as error:
        raise LookupError(f"it is not JSON: {error}") from None
    except (BadSchema, RecursionError) as error:
        raise LookupError(str(error)) from None
    return text


def _read(file: Path) -> str:
    try:
        if not file.is_file():
            raise BadSchema(f"there is no file {file}")
        if file.stat().st_size > _LARGEST:
            raise BadSchema(f"{file} is larger than {_LARGEST // 1_000_000} MB")
        return file.read_text("utf-8")
    except OSError as error:
        raise BadSchema(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadSchema(f"{file} is not UTF-8") from None
