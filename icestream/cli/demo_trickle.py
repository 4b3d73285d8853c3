"""A few new records every second while somebody looks at the demo: `demo --keep` holds it open."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from icestream.api.errors import IcestreamError
from icestream.embedded.loadgen import produce
from icestream.embedded.minio_tables import LOG_TABLES, LogTable

RATES: Final = {"api": 60.0, "error": 20.0, "audit": 20.0}
"""Records a second, by kind of log."""
_A_WEEK: Final = 7 * 24 * 3_600


class _OverError(Exception):
    """The demo ends."""


@contextmanager
def trickle(bootstrap: str, seed: int) -> Iterator[None]:
    """While the block runs, its topics get records, each by a thread of its own."""
    is_over = threading.Event()

    def pause(seconds: float) -> None:
        if is_over.wait(seconds):
            raise _OverError

    def load(log: LogTable) -> None:
        rate = RATES[log.kind]
        # A broker that is gone is seen in the console, and the demo has proved what it wanted to.
        with suppress(_OverError, IcestreamError):
            produce(
                bootstrap,
                log.topic,
                log.kind,
                int(_A_WEEK * rate),
                rate=rate,
                seed=seed,
                sleep=pause,
            )

    threads = [threading.Thread(target=load, args=(log,), daemon=True) for log in LOG_TABLES]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join(2)
