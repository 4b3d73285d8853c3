"""What the doctor asks a worker that runs, by REST: how it is, and how one of its connectors is; and whether
clocks that HTTP shows are those of this machine."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from icestream.api.errors import WorkerUnreachable
from icestream.cli.doctor.findings import Finding, fine, notice, wrong
from icestream.cli.doctor.kafka import clock_finding

if TYPE_CHECKING:
    from icestream.client import ConnectClient


def worker_findings(client: ConnectClient) -> Iterator[Finding]:
    what = f"worker {client.url}"
    try:
        server = client.server()
    except WorkerUnreachable as error:
        yield wrong(what, str(error), "start it, or correct --url")
        return
    yield fine(what, f"answers, version {server.get('version', 'unknown')}")
    for path, name in (("/live", "live"), ("/ready", "ready"), ("/health", "health")):
        status, said = client.probe(path)
        message = str(said.get("message", "")).strip() or "no reason given"
        if status == 200:
            yield fine(f"worker, {name}", message)
        elif status == 404:
            yield notice(
                f"worker, {name}", "it has no such page", "it is no worker of Icestream, or an old one"
            )
        else:
            yield wrong(f"worker, {name}", message, "see its log; docs/operations.md tells what counts")


def validate_findings(client: ConnectClient, name: str, config: Mapping[str, str]) -> Iterator[Finding]:
    """The config as the worker that runs it sees it: only that one knows its own converters and its Kafka."""
    what = f"connector {name}"
    report = client.validate(config.get("connector.class", ""), config)
    found = False
    for setting in report.get("configs", []):
        for message in (setting.get("value") or {}).get("errors", []):
            found = True
            fact, _, advice = str(message).rstrip(".").rpartition("; ")
            yield wrong(what, fact or advice, advice if fact else "correct this key")
    if not found:
        yield fine(what, "its worker finds the config valid, and all that it points at")


def state_findings(client: ConnectClient, name: str) -> Iterator[Finding]:
    what = f"connector {name}, state"
    status = client.status(name)
    state = status.state
    if state == "FAILED":
        trace = (status.trace or "").strip().splitlines()
        # Of Python's traces the last line has the reason.
        reason = trace[-1 if trace[0].startswith("Traceback") else 0] if trace else "no reason given"
        yield wrong(what, f"FAILED: {reason}", f"mend it, then `icestream connector restart {name}`")
    elif state in ("RUNNING", "PAUSED", "STOPPED"):
        yield fine(what, f"{state} on {status.worker_id or 'no worker'}")
    else:
        yield notice(what, state, "wait a moment; then see the worker's log")


def clock_findings(url: str, seconds: float) -> Iterator[Finding]:
    """By the Date of any HTTP server; good to a second."""
    import httpx

    what = f"clock of {url.partition('://')[2].partition('/')[0].rpartition('@')[2] or 'HTTP'}"
    try:
        before = time.time()
        answer = httpx.head(url, timeout=max(1.0, seconds - 1), follow_redirects=False, trust_env=False)
        now = (before + time.time()) / 2
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        yield wrong(what, f"does not answer ({type(error).__name__})", "check the address after --clock")
        return
    try:
        told = email.utils.parsedate_to_datetime(answer.headers.get("date", ""))
    except (TypeError, ValueError):
        yield notice(what, "its answer has no Date", "name another server after --clock")
        return
    # Date is cut to whole seconds.
    yield clock_finding(what, told.timestamp() + 0.5 - now)
