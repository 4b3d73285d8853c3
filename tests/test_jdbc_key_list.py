"""Every key of the JDBC sink, under the names of its three products, and the test that exercises it.

A key that is declared and not listed here fails, as does one whose test is gone or no longer names it.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

from icestream.api.config import ConfigDef
from icestream.connectors.jdbc.sink import keys

TESTS: Final = Path(__file__).parent
KEYS: Final = "integration/jdbc/test_sink_keys.py"
DIALECTS: Final = "integration/jdbc/test_dialects.py"
ADDRESSES: Final = "unit/connectors/jdbc/test_addresses.py"
SETTINGS: Final = "unit/connectors/jdbc/test_sink_settings.py"
RETRIES: Final = f"{KEYS}::test_max_retries_and_retry_backoff_are_those_of_outages"
OF_DEBEZIUM: Final = f"{KEYS}::test_keys_of_debezium"
OF_AIVEN: Final = f"{KEYS}::test_keys_of_aiven"
NO_EFFECT: Final = f"{SETTINGS}::test_keys_without_effect_are_told"
UPSERTS: Final = "integration/jdbc/test_sink.py::test_the_last_record_of_a_key_counts_and_none_deletes_it"
ROUTES: Final = f"{KEYS}::test_table_name_format_routes_topics_to_their_tables"
AWAY: Final = f"{DIALECTS}::test_a_database_that_is_away_is_tried_again"

SHARED: Final = {
    "connection.url": f"{ADDRESSES}::test_other_addresses_are_refused",
    "connection.user": f"{ADDRESSES}::test_a_server_with_its_login_apart",
    "connection.password": f"{DIALECTS}::test_a_wrong_login_fails_at_once",
    "connection.attempts": AWAY,
    "connection.backoff.ms": AWAY,
    "connection.": f"{ADDRESSES}::test_parameters_may_be_keys",
    "dialect.name": f"{ADDRESSES}::test_a_dialect_of_another_database_is_refused",
    "jdbc.credentials.provider.class": f"{SETTINGS}::test_other_classes_for_logins_are_refused",
    "insert.mode": f"{KEYS}::test_insert_mode_update_changes_only_rows_that_are_there",
    "batch.size": NO_EFFECT,
    "delete.enabled": f"{KEYS}::test_delete_enabled_deletes_also_between_inserts",
    "table.name.format": ROUTES,
    "pk.mode": f"{KEYS}::test_pk_mode_kafka_names_the_origin_of_each_row",
    "pk.fields": f"{KEYS}::test_pk_fields_of_kafka_may_have_other_names",
    "fields.whitelist": f"{KEYS}::test_fields_whitelist_takes_only_these_and_the_key",
    "db.timezone": f"{KEYS}::test_db_timezone_and_date_timezone",
    "auto.create": f"{KEYS}::test_auto_create_makes_columns_of_the_schemas_types",
    "auto.evolve": f"{KEYS}::test_auto_evolve_adds_columns",
    "max.retries": RETRIES,
    "retry.backoff.ms": RETRIES,
    "icestream.jdbc.checkpoint.table": f"{KEYS}::test_icestream_jdbc_checkpoint_table",
    "icestream.jdbc.tables.max": f"{SETTINGS}::test_records_may_name_so_many_tables",
    "icestream.jdbc.commit.interval.ms": f"{SETTINGS}::test_commits_have_an_interval",
}
CONFLUENT: Final = SHARED | {
    "table.types": f"{KEYS}::test_table_types_may_be_partitioned_tables",
    "date.timezone": f"{KEYS}::test_db_timezone_and_date_timezone",
    "timestamp.precision.mode": f"{KEYS}::test_timestamp_fields_list_and_precision",
    "timestamp.fields.list": f"{KEYS}::test_timestamp_fields_list_and_precision",
    "date.calendar.system": NO_EFFECT,
    "string.output.value.column.name": f"{KEYS}::test_string_output_value_column_name_takes_mere_texts",
    "quote.sql.identifiers": f"{KEYS}::test_quote_sql_identifiers_never",
    "replace.null.with.default": f"{KEYS}::test_replace_null_with_default",
    "mssql.use.merge.holdlock": NO_EFFECT,
    "trim.sensitive.log": NO_EFFECT,
}
AIVEN: Final = SHARED | {
    "sql.quote.identifiers": OF_AIVEN,
    "topics.to.tables.mapping": OF_AIVEN,
    "table.name.normalize": OF_AIVEN,
}
DEBEZIUM: Final = {
    **{key: test for key, test in SHARED.items() if key in keys.DEBEZIUM.names},
    "connection.username": OF_DEBEZIUM,
    "connection.pool.": f"{SETTINGS}::test_a_pool_of_connections_is_taken",
    "primary.key.mode": OF_DEBEZIUM,
    "primary.key.fields": OF_DEBEZIUM,
    "schema.evolution": OF_DEBEZIUM,
    "collection.name.format": OF_DEBEZIUM,
    "field.include.list": f"{SETTINGS}::test_fields_of_debezium_may_have_their_topic",
    "field.exclude.list": OF_DEBEZIUM,
    "use.time.zone": OF_DEBEZIUM,
    "quote.identifiers": NO_EFFECT,
    "use.reduction.buffer": NO_EFFECT,
    "connection.restart.on.errors": NO_EFFECT,
    "flush.max.retries": RETRIES,
    "flush.retry.delay.ms": RETRIES,
}


@pytest.mark.parametrize(
    ("declared", "listed"),
    [(keys.CONFLUENT, CONFLUENT), (keys.AIVEN, AIVEN), (keys.DEBEZIUM, DEBEZIUM)],
    ids=["confluent", "aiven", "debezium"],
)
def test_every_key_has_a_test(declared: ConfigDef, listed: dict[str, str]) -> None:
    assert sorted(listed) == sorted([*declared.names, *declared.prefixes])


@pytest.mark.parametrize(("key", "test"), sorted({*CONFLUENT.items(), *AIVEN.items(), *DEBEZIUM.items()}))
def test_the_test_of_a_key_is_there_and_names_it(key: str, test: str) -> None:
    path, _, name = test.partition("::")
    text = (TESTS / path).read_text()
    functions = [one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.FunctionDef)]
    (found,) = [one for one in functions if one.name == name]
    first = min([found.lineno, *(one.lineno for one in found.decorator_list)]) - 1
    # Keys of a connection stand there without their common beginning.
    said = "\n".join([*text.splitlines()[first : found.end_lineno], text.partition("def ")[0]])
    assert key in said or key.removeprefix("connection.") in said
