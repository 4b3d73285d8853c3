"""Which tables of a database a source reads."""

from __future__ import annotations

from icestream.connectors.jdbc.dialects.base import TableId
from icestream.connectors.jdbc.source.tables import TableChoice, chosen_tables

FOUND = [
    TableId("shop", "public", name)
    for name in ("orders", "icestream_checkpoints", "icestream_stage_0a_1_2_3", "icestream_orders")
]


def names(choice: TableChoice) -> list[str]:
    return [table.name for table in chosen_tables(FOUND, choice)]


def test_tables_that_sinks_keep_for_themselves_are_left_out_unless_they_are_named() -> None:
    assert names(TableChoice()) == ["orders", "icestream_orders"]
    assert names(TableChoice(patterns=[".*"])) == ["orders", "icestream_orders"]
    assert names(TableChoice(names=["icestream_checkpoints"])) == ["icestream_checkpoints"]
