"""The table of the console's API: every path, its verb, its handler, and the level that it needs."""

from __future__ import annotations

from typing import Final

from icestream.rest.console import configs, connectors, letters, offsets, worker
from icestream.rest.console.exchange import Table

TABLE: Final[Table] = {
    **worker.ROUTES,
    **connectors.ROUTES,
    **configs.ROUTES,
    **letters.ROUTES,
    **offsets.ROUTES,
}
