"""Which back end `icestream stack` takes: compose where Docker is and can start all of it, else processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from icestream.api.errors import PreconditionError
from icestream.stack.compose import ComposeBackend, compose_folder, find_compose
from icestream.stack.settings import Settings

VARIABLE: Final = "ICESTREAM_STACK"
_CHOICES: Final = ("auto", "processes", "compose")


def compose_backend(
    settings: Settings,
    environ: Mapping[str, str],
    find: Callable[[], tuple[str, ...] | None] = find_compose,
) -> ComposeBackend | None:
    """The compose back end if it is to be taken; None: processes.

    By itself it is taken only where Docker answers, its files are there and a licence is set: without one the
    containers of the stack end at once, and processes need none.
    """
    asked = environ.get(VARIABLE, "").strip() or "auto"
    if asked not in _CHOICES:
        raise PreconditionError(f"{VARIABLE} is '{asked[:20]}'; write {', '.join(_CHOICES[:-1])} or compose")
    if asked == "processes" or (asked == "auto" and not settings.minio_license):
        return None
    folder = _folder(environ) if asked == "auto" else compose_folder(environ)
    command = find() if folder else None
    if asked == "compose" and command is None:
        raise PreconditionError("no Docker with Compose answers; start it, or set ICESTREAM_STACK=processes")
    return ComposeBackend(settings, folder, command) if folder and command else None


def _folder(environ: Mapping[str, str]) -> Path | None:
    try:
        return compose_folder(environ)
    except PreconditionError:
        return None
