"""The names of tables that sinks keep for themselves in a database; sources that are to read all tables leave
them out."""

from __future__ import annotations

from typing import Final

STAGE: Final = "icestream_stage_"
"""How the names of staging tables begin."""
CHECKPOINTS: Final = "icestream_checkpoints"
"""Unless the sink's config names another."""


def is_own(table: str) -> bool:
    return table == CHECKPOINTS or table.startswith(STAGE)
