"""Every key of the Delta sink, and the tests that exercise it; by the rules of `test_iceberg_key_list.py`."""

from __future__ import annotations

import re
from typing import Final

import pytest

from icestream.connectors.delta import settings
from tests.test_iceberg_key_list import TESTS, mentions, source_of

UNIT: Final = "unit/connectors/delta"
ROWS: Final = f"{UNIT}/test_rows.py"
ROUTES: Final = f"{UNIT}/test_routing.py"
SETTINGS: Final = f"{UNIT}/test_settings.py"
WORKER: Final = "integration/test_delta.py::test_records_name_their_tables_in_a_bucket"
TABLE: Final = "delta.table.<table>."
S3: Final = f"{SETTINGS}::test_storage_options_never_show_a_secret"
COMMITS: Final = f"{SETTINGS}::test_commits_follow_the_config"
CREATED: Final = f"{ROWS}::test_a_table_is_created_from_its_records"

KEYS: Final = {
    "delta.tables": f"{ROUTES}::test_records_go_to_the_tables_whose_pattern_they_match",
    "delta.location": WORKER,
    "delta.tables.dynamic-enabled": f"{ROUTES}::test_the_table_may_be_named_by_the_record",
    "delta.tables.route-field": f"{ROUTES}::test_records_go_to_the_tables_whose_pattern_they_match",
    "delta.tables.route-template": WORKER,
    "delta.tables.route-unmatched": f"{ROUTES}::test_records_go_to_the_tables_whose_pattern_they_match",
    "delta.tables.route-max-tables": f"{ROUTES}::test_a_template_names_tables",
    "delta.tables.default-id-columns": (
        f"{ROWS}::test_a_table_that_cannot_be_as_the_config_says_is_not_created"
    ),
    "delta.tables.default-partition-by": WORKER,
    "delta.tables.auto-create-enabled": WORKER,
    "delta.tables.evolve-schema-enabled": WORKER,
    "delta.tables.schema-force-optional": (f"{ROWS}::test_new_columns_are_optional_if_the_config_says_so"),
    "delta.tables.schema-case-insensitive": f"{ROWS}::test_names_match_whatever_their_case",
    "delta.tables.auto-create-props.": CREATED,
    "delta.tables.write-props.": f"{ROWS}::test_files_are_written_as_the_properties_say",
    "delta.tables.cdc-field": (
        "crashes/test_delta_upserts.py::test_the_table_is_what_a_dict_is_after_random_batches_and_kills"
    ),
    "delta.tables.upsert-mode-enabled": (
        "crashes/test_delta_upserts.py::test_upserts_without_a_field_for_the_kind_of_change"
    ),
    f"{TABLE}location": f"{ROWS}::test_a_table_of_its_own_place",
    f"{TABLE}id-columns": CREATED,
    f"{TABLE}partition-by": CREATED,
    f"{TABLE}route-regex": f"{ROUTES}::test_records_go_to_the_tables_whose_pattern_they_match",
    "delta.control.commit.interval-ms": WORKER,
    "delta.control.commit.timeout-ms": WORKER,
    "delta.control.commit.threads": COMMITS,
    "delta.control.commit.max-consecutive-failures": COMMITS,
    "delta.connect.group-id": WORKER,
    "delta.coordinator.transactional.prefix": WORKER,
    "icestream.delta.json-columns": f"{ROWS}::test_free_form_fields_are_columns_of_text",
    "icestream.delta.kafka-columns": f"{ROWS}::test_rows_tell_where_they_are_from",
    "delta.storage.s3.endpoint": S3,
    "delta.storage.s3.region": S3,
    "delta.storage.s3.access-key-id": S3,
    "delta.storage.s3.secret-access-key": S3,
    "delta.storage.s3.session-token": S3,
    "delta.storage.s3.path-style-access": S3,
}

MAINTENANCE: Final = f"{UNIT}/test_maintenance.py::test_every_key_counts"
ALL: Final = {
    **KEYS,
    **dict.fromkeys((name for name in settings.MAINTENANCE.definition.names), MAINTENANCE),
    **dict.fromkeys(settings.MAINTENANCE.definition.prefixes, MAINTENANCE),
}


def declared() -> set[str]:
    definition = settings.definition({"delta.tables": "ns.t"})
    names = {re.sub(r"^delta\.table\.ns\.t\.", TABLE, setting.name) for setting in definition.settings}
    return names | set(definition.prefixes)


def test_every_declared_key_is_listed_and_every_listed_key_is_declared() -> None:
    assert declared() == ALL.keys()


@pytest.mark.parametrize("key", sorted(ALL))
def test_a_key_has_a_test_that_sets_it(key: str) -> None:
    file, _, name = ALL[key].partition("::")
    text = source_of(TESTS / file, name)
    assert text, f"{ALL[key]} does not exist; name another test of {key}"
    # The test of maintenance has its keys without what they all begin with.
    shown = key.removeprefix("icestream.maintenance.") if ALL[key] == MAINTENANCE else key
    assert mentions(text, shown), f"{ALL[key]} does not set {key}; name a test that does"
