"""The audit log: who asked for which change, from where, and what came of it; failed logins too.

`rest/server.py` puts it around everything else. Lines go to the logger `icestream.audit`: to the
worker's log and, if `icestream.audit.file` is set, to that file.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
from pathlib import Path
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from icestream.api.errors import PreconditionError
from icestream.logs import KEPT, audit_handler

LOG: Final = logging.getLogger("icestream.audit")
USER: Final = "icestream.user"
"""Where authentication leaves the user in the scope of a request."""
IN_QUERY: Final = "icestream.audit_query"
"""In the scope of requests whose query says what they are about."""
_READS: Final = ("GET", "HEAD", "OPTIONS")
_LONGEST_PATH: Final = 500
_MOST_IN_FILE: Final = 1000
"""Failed logins in ten seconds: more would fill the disk."""


class Audit:
    """Logs each request before its answer is sent: changes always, failed logins, reads at DEBUG."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_told = scope["type"] != "http"

        async def sending(message: Message) -> None:
            nonlocal is_told
            if message["type"] == "http.response.start" and not is_told:
                is_told = True
                _log(scope, message["status"])
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            if not is_told:
                _log(scope, None)


def _log(scope: Scope, status: int | None) -> None:
    method: str = scope["method"]
    host, port = scope["client"] or ("?", 0)
    # How a listener on all interfaces sees an address of version 4.
    host = host.removeprefix("::ffff:")
    # Still encoded, so that no name can write a line of its own.
    path = scope["raw_path"].decode("ascii", "replace")
    if scope.get(IN_QUERY) and scope["query_string"]:
        path += "?" + scope["query_string"].decode("ascii", "replace")
    path = path[:_LONGEST_PATH]
    user = json.dumps(scope.get(USER, "-"), ensure_ascii=False)
    facts = (user, host, port, method, path, status if status is not None else "none")
    if status == 401:
        LOG.warning("login failed: user=%s from=%s:%s request=%s %s result=%s", *facts)
    elif method in _READS:
        LOG.debug("user=%s from=%s:%s request=%s %s result=%s", *facts)
    else:
        # A change that was made is never left out, however many there are.
        is_made = status is not None and status < 400
        LOG.info("user=%s from=%s:%s request=%s %s result=%s", *facts, extra={KEPT: is_made})


def audit_to(file: Path) -> None:
    """Append the audit log to this file too, which nobody else may read; it may be rotated by renaming it."""
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        handler = logging.handlers.WatchedFileHandler(file, encoding="utf-8")
    except OSError as error:
        raise PreconditionError(
            f"cannot write the audit log {file} ({error.strerror}); set 'icestream.audit.file' to a file "
            "that we may write to"
        ) from None
    LOG.addHandler(audit_handler(handler, _MOST_IN_FILE))
