"""Every key of the JDBC source, and the test that sets it. A key that is declared and not listed here fails,
as does one whose test is gone or no longer names it. Tests may write `_` for the dots of a key."""

from __future__ import annotations

import re
from typing import Final

import pytest

from icestream.connectors.jdbc.source.keys import JDBC_SOURCE, WITHOUT_EFFECT
from tests.test_iceberg_key_list import TESTS, source_of

POSTGRESQL: Final = "integration/jdbc/test_source_postgresql.py"
TYPES: Final = "integration/jdbc/test_source_types.py"
DATABASES: Final = "integration/jdbc/test_source_databases.py"
UNIT: Final = "unit/connectors/jdbc/test_source_settings.py"
REACHED: Final = f"{UNIT}::test_how_the_database_is_reached"
NO_EFFECT: Final = f"{UNIT}::test_keys_without_effect_are_told"
WHICH: Final = f"{POSTGRESQL}::test_which_tables_are_read"
BY_TABLE: Final = f"{POSTGRESQL}::test_columns_by_table"
KILLED: Final = (
    "crashes/test_jdbc_source.py::"
    "test_rows_that_are_written_meanwhile_are_sent_once_though_the_source_is_killed"
)

ALL: Final = {
    "connection.url": "integration/jdbc/test_source_worker.py::test_the_example_of_the_page",
    "connection.user": REACHED,
    "connection.password": "integration/jdbc/test_source_worker.py::test_validate_asks_the_database",
    "connection.attempts": REACHED,
    "connection.backoff.ms": REACHED,
    "connection.": REACHED,
    "jdbc.credentials.provider.class": f"{UNIT}::test_what_does_not_go_is_blamed_on_its_key",
    "jdbc.credentials.provider.": REACHED,
    "dialect.name": REACHED,
    "catalog.pattern": WHICH,
    "schema.pattern": f"{POSTGRESQL}::test_two_tables_of_one_name_are_refused",
    "table.whitelist": WHICH,
    "table.blacklist": WHICH,
    "table.include.list": WHICH,
    "table.exclude.list": WHICH,
    "table.types": WHICH,
    "numeric.precision.mapping": f"{TYPES}::test_numbers",
    "numeric.mapping": f"{TYPES}::test_numbers",
    "date.calendar.system": NO_EFFECT,
    "db.timezone": f"{TYPES}::test_a_zone_of_timestamps_that_have_none",
    "quote.sql.identifiers": f"{POSTGRESQL}::test_names_in_any_case",
    "mode": KILLED,
    "incrementing.column.name": f"{POSTGRESQL}::test_rows_come_once_by_their_number",
    "incrementing.column.mapping": BY_TABLE,
    "incrementing.initial": f"{POSTGRESQL}::test_a_first_read_may_begin_later",
    "timestamp.column.name": f"{POSTGRESQL}::test_timestamp_and_number",
    "timestamp.columns.mapping": BY_TABLE,
    "timestamp.initial": f"{POSTGRESQL}::test_the_first_start_is_remembered",
    "timestamp.initial.ms": f"{POSTGRESQL}::test_a_first_read_may_begin_later",
    "timestamp.granularity": f"{TYPES}::test_timestamps_of_finer_grain",
    "validate.non.null": f"{POSTGRESQL}::test_columns_that_may_be_null_are_refused",
    "query": f"{DATABASES}::test_rows_of_a_query",
    "query.masked": f"{POSTGRESQL}::test_rows_of_a_query",
    "query.suffix": f"{POSTGRESQL}::test_a_suffix_ends_every_statement",
    "query.retry.attempts": f"{UNIT}::test_a_database_that_is_away_is_asked_again",
    "transaction.isolation.mode": f"{POSTGRESQL}::test_isolation",
    "poll.interval.ms": f"{POSTGRESQL}::test_a_dump_goes_on_after_the_last_key",
    "batch.max.rows": KILLED,
    "max.buffer.size": NO_EFFECT,
    "poll.linger.ms": NO_EFFECT,
    "table.poll.interval.ms": f"{POSTGRESQL}::test_tables_that_appear_later_are_found",
    "table.monitoring.startup.polling.limit.ms": NO_EFFECT,
    "timestamp.delay.interval.ms": f"{POSTGRESQL}::test_rows_younger_than_the_delay_wait",
    "topic.prefix": f"{DATABASES}::test_rows_of_a_query",
    "table.names.qualify": NO_EFFECT,
    "sql.quote.identifiers": NO_EFFECT,
    "engine.shutdown.timeout": NO_EFFECT,
    "icestream.jdbc.transaction.wait.ms": (
        f"{POSTGRESQL}::test_transactions_that_do_not_write_are_not_waited_for_longer_than_the_limit"
    ),
}


def test_every_declared_key_is_listed_and_every_listed_key_is_declared() -> None:
    assert {*JDBC_SOURCE.names, *JDBC_SOURCE.prefixes} == ALL.keys()


@pytest.mark.parametrize("key", sorted(ALL))
def test_a_key_has_a_test_that_sets_it(key: str) -> None:
    file, _, name = ALL[key].partition("::")
    text = source_of(TESTS / file, name)
    if name == "test_the_example_of_the_page":
        text += (TESTS.parent / "docs" / "connectors" / "jdbc-source.md").read_text()
    assert text, f"{ALL[key]} does not exist; name another test of {key}"
    pattern = re.escape(key).replace(r"\.", r"[._]")
    ends = "" if key.endswith(".") else r"(?![\w.\-])"
    assert re.search(rf"(?<![\w.]){pattern}{ends}", text), f"{ALL[key]} does not set {key}"


def test_the_page_on_compatibility_tells_of_each_key_without_effect() -> None:
    page = (TESTS.parent / "docs" / "compatibility.md").read_text()
    for key in WITHOUT_EFFECT:
        assert f"`{key}`" in page
