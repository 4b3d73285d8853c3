"""Every key of the Iceberg sink, and the tests that exercise it.

A key that is declared and not listed here fails, as does one whose test is gone or no longer names it. To add
a key: declare it, write a test that sets it, add a line with its `path::name` below `tests/`. A key that ends
with a dot is a prefix, and the test sets some key below it.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from icestream.api.connector_settings import SINK_CONNECTOR
from icestream.connectors.iceberg import settings
from icestream.connectors.iceberg.plugin import IcebergPlugin

TESTS: Final = Path(__file__).parent
UNIT: Final = "unit/connectors/iceberg"
EXAMPLES: Final = "integration/test_iceberg_examples.py"
WORKER: Final = "integration/test_iceberg_keys.py"
TABLE: Final = "iceberg.table.<table>."
CREATION: Final = (
    "crashes/test_new_tables.py::test_a_manager_killed_around_the_creation_of_its_table_leaves_every_row_once"
)
BRANCHES: Final = f"{UNIT}/test_commit_branches.py"
ROUTED: Final = "crashes/test_routed.py"
GROWTH: Final = "integration/test_worker.py::test_a_table_is_created_from_its_records_and_grows_with_them"
MAINTENANCE: Final = f"{UNIT}/test_maintenance_settings.py::test_every_key_counts"

APACHE: Final = {
    "iceberg.tables": "integration/test_worker.py::test_records_land_and_new_fields_become_columns",
    "iceberg.tables.dynamic-enabled": f"{ROUTED}::test_the_table_may_be_named_by_the_record",
    "iceberg.tables.route-field": f"{ROUTED}::test_records_go_to_the_tables_whose_pattern_they_match",
    "iceberg.tables.default-commit-branch": f"{BRANCHES}::test_rows_are_on_the_branch_only",
    "iceberg.tables.default-id-columns": CREATION,
    "iceberg.tables.default-partition-by": CREATION,
    "iceberg.tables.auto-create-enabled": CREATION,
    "iceberg.tables.evolve-schema-enabled": (
        "integration/test_worker.py::test_records_land_and_new_fields_become_columns"
    ),
    "iceberg.tables.schema-force-optional": GROWTH,
    "iceberg.tables.schema-case-insensitive": GROWTH,
    "iceberg.tables.auto-create-props.": CREATION,
    "iceberg.tables.write-props.": (
        f"{UNIT}/test_table_properties.py::test_values_that_no_file_could_be_written_with_are_refused"
    ),
    f"{TABLE}commit-branch": f"{BRANCHES}::test_a_table_may_have_a_branch_of_its_own",
    f"{TABLE}id-columns": (
        f"{UNIT}/test_new_table.py::test_settings_of_a_table_have_its_full_name_or_its_bare_one"
    ),
    f"{TABLE}partition-by": (
        f"{UNIT}/test_new_table.py::"
        "test_a_table_gets_columns_partitions_identifiers_properties_and_its_namespaces"
    ),
    f"{TABLE}route-regex": f"{ROUTED}::test_records_go_to_the_tables_whose_pattern_they_match",
    "iceberg.control.topic": f"{WORKER}::test_keys_of_the_coordinator",
    "iceberg.control.group-id-prefix": (
        f"{UNIT}/test_commit_keys.py::"
        "test_keys_of_parts_that_java_has_and_we_do_not_are_taken_and_said_to_have_no_effect"
    ),
    "iceberg.control.commit.interval-ms": (
        f"{WORKER}::test_a_full_batch_is_committed_before_the_interval_is_over"
    ),
    "iceberg.control.commit.timeout-ms": f"{WORKER}::test_keys_of_the_coordinator",
    "iceberg.control.commit.threads": (
        "crashes/test_kills.py::"
        "test_a_manager_killed_while_tables_are_committed_at_the_same_time_gives_each_every_row_once"
    ),
    "iceberg.control.commit.max-consecutive-failures": f"{WORKER}::test_keys_of_the_coordinator",
    "iceberg.connect.group-id": f"{WORKER}::test_keys_of_the_coordinator",
    "iceberg.coordinator.transactional.prefix": f"{WORKER}::test_keys_of_the_coordinator",
    "iceberg.coordinator-executor-keep-alive-timeout-ms": (
        f"{UNIT}/test_commit_keys.py::"
        "test_keys_of_parts_that_java_has_and_we_do_not_are_taken_and_said_to_have_no_effect"
    ),
    "iceberg.catalog": (
        "crashes/test_kills.py::test_a_manager_killed_after_staging_leaves_files_that_nobody_references"
    ),
    "iceberg.catalog.": "integration/test_object_stores.py::test_keys_and_a_session_in_icebergs_words",
    "iceberg.hadoop-conf-dir": "integration/test_object_stores.py::test_the_same_in_hadoops_words",
    "iceberg.hadoop.": "integration/test_object_stores.py::test_the_same_in_hadoops_words",
    "iceberg.kafka.": f"{WORKER}::test_keys_of_the_coordinator",
}
"""All keys of the Apache connector, as of August 2026."""

TABULAR: Final = {
    "iceberg.tables.cdc-field": (
        "crashes/test_upserts.py::test_the_table_is_what_a_dict_is_after_random_batches_and_kills"
    ),
    "iceberg.tables.upsert-mode-enabled": f"{EXAMPLES}::test_an_example_does_what_the_page_says",
    "iceberg.control.group-id": f"{WORKER}::test_a_group_of_tabulars_sink_says_where_to_go_on",
    "iceberg.table.write-props.": (
        f"{UNIT}/test_table_properties.py::test_values_that_no_file_could_be_written_with_are_refused"
    ),
}
"""Those that Tabular's connector had besides."""

OURS: Final = {
    "iceberg.tables.route-template": f"{ROUTED}::test_the_table_may_be_made_of_a_template_and_must_exist",
    "iceberg.tables.route-unmatched": f"{ROUTED}::test_records_that_match_no_pattern_can_be_rejected",
    "iceberg.tables.route-max-tables": f"{ROUTED}::test_a_topic_that_names_no_end_of_tables_stops_its_job",
    "icestream.iceberg.json-columns": (
        f"{UNIT}/test_kafka_columns.py::test_a_new_table_has_text_for_fields_of_no_fixed_shape"
    ),
    "icestream.iceberg.kafka-columns": GROWTH,
    "icestream.maintenance.enabled": MAINTENANCE,
    "icestream.maintenance.interval-ms": MAINTENANCE,
    "icestream.maintenance.commits": MAINTENANCE,
    "icestream.maintenance.compaction.enabled": MAINTENANCE,
    "icestream.maintenance.compaction.min-files": MAINTENANCE,
    "icestream.maintenance.compaction.target-bytes": MAINTENANCE,
    "icestream.maintenance.compaction.deletes-percent": MAINTENANCE,
    "icestream.maintenance.manifests.min-count": MAINTENANCE,
    "icestream.maintenance.expire.enabled": MAINTENANCE,
    "icestream.maintenance.expire.older-than-ms": MAINTENANCE,
    "icestream.maintenance.expire.retain-last": MAINTENANCE,
    "icestream.maintenance.expire.max-snapshots": MAINTENANCE,
    "icestream.maintenance.orphans.enabled": MAINTENANCE,
    "icestream.maintenance.orphans.older-than-ms": MAINTENANCE,
    "icestream.maintenance.table.": (
        f"{UNIT}/test_maintenance_settings.py::test_nothing_is_maintained_unless_asked_for"
    ),
}
"""Those that only we have."""

_RESTARTS: Final = "unit/cluster/test_restarts.py::test_the_policy_is_read_from_the_config"
_COLUMNS: Final = "unit/rows/test_new_columns.py::test_the_settings_have_defaults"
_PLACE: Final = (
    "crashes/test_job_processes.py::test_whoever_is_killed_between_two_steps_each_record_lands_once"
)
_MEMORY: Final = (
    "unit/jobs/test_job_place.py::test_the_connector_s_word_on_memory_and_heartbeat_is_before_the_worker_s"
)
_RETRIES: Final = "unit/cluster/test_retry_settings.py::test_the_keys_of_a_connector"
_SILENT: Final = (
    "crashes/test_silent_catalog.py::test_a_catalog_that_stops_answering_in_mid_batch_is_an_outage_that_ends"
)
EVERY_SINK: Final = {
    "icestream.unknown.keys": (
        "unit/cluster/test_validation.py::test_a_worker_that_refuses_unknown_keys_leaves_connectors_no_choice"
    ),
    "icestream.restart.policy": _RESTARTS,
    "icestream.restart.attempts": _RESTARTS,
    "icestream.restart.delay.ms": _RESTARTS,
    "icestream.restart.delay.max.ms": _RESTARTS,
    "icestream.retry.max": _RETRIES,
    "icestream.retry.backoff.ms": _RETRIES,
    "icestream.retry.backoff.max.ms": _RETRIES,
    "icestream.circuit.failures": _SILENT,
    "icestream.circuit.open.ms": _SILENT,
    "icestream.job.manager": _PLACE,
    "icestream.job.manager.driver.memory": _MEMORY,
    "icestream.job.manager.heartbeat.timeout.ms": _MEMORY,
    "icestream.commit.rows": f"{WORKER}::test_a_full_batch_is_committed_before_the_interval_is_over",
    "icestream.commit.bytes": f"{WORKER}::test_a_full_batch_is_committed_before_the_interval_is_over",
    "icestream.new.columns.max": _COLUMNS,
    "icestream.new.columns.name.length.max": _COLUMNS,
}
"""Those that every sink has from us."""

ALL: Final = {**APACHE, **TABULAR, **OURS, **EVERY_SINK}


def declared() -> set[str]:
    """The keys and prefixes of the sink, with the table of an example for all tables."""
    definition = settings.definition({"iceberg.tables": "ns.t"})
    # Some keys of a table may have its bare name, too.
    names = {re.sub(r"^iceberg\.table\.(ns\.)?t\.", TABLE, setting.name) for setting in definition.settings}
    return names | set(definition.prefixes)


def test_every_declared_key_is_listed_and_every_listed_key_is_declared() -> None:
    assert declared() == ALL.keys() - EVERY_SINK.keys()
    assert {name for name in SINK_CONNECTOR.names if name.startswith("icestream.")} == EVERY_SINK.keys()


@pytest.mark.parametrize("key", sorted(ALL))
def test_a_key_has_a_test_that_sets_it(key: str) -> None:
    place = ALL[key]
    assert place, f"{key} has no test: write one and name it here"
    file, _, name = place.partition("::")
    text = source_of(TESTS / file, name)
    if file == EXAMPLES:
        page = (TESTS.parent / "docs" / "connectors" / "iceberg.md").read_text()
        text += "".join(re.findall(r"<!-- example: .*?<!-- end of example -->", page, re.DOTALL))
    assert text, f"{place} does not exist; name another test of {key}"
    assert mentions(text, key), f"{place} does not set {key}; name a test that does"


def test_no_key_is_refused_as_not_supported() -> None:
    example = {"connector.class": IcebergPlugin.classes[0].name, "iceberg.catalog.type": "rest"}
    for key in APACHE.keys() | TABULAR.keys():
        for value in ("true", "x"):
            given = {**example, "iceberg.tables": "ns.t", key.replace("<table>", "ns.t"): value}
            for problem in IcebergPlugin().problems(given):
                assert "not supported by this version" not in problem.message, problem.message


def test_the_page_on_compatibility_tells_of_each_key_without_effect_why() -> None:
    page = (TESTS.parent / "docs" / "compatibility.md").read_text()
    for key in settings._WITHOUT_EFFECT:
        assert f"`{key}`" in page


def mentions(text: str, key: str) -> bool:
    pattern = re.escape(key).replace(re.escape("<table>"), r"[\w.{}]+")
    return re.search(pattern if key.endswith(".") else rf"{pattern}(?![\w.\-])", text) is not None


def source_of(file: Path, name: str) -> str:
    """The text of a test, with its decorators and whatever of the tests' own it uses, wherever that is."""
    return "".join(_parts(file, name, set()))


def _parts(file: Path, name: str, seen: set[tuple[Path, str]]) -> Iterator[str]:
    if (file, name) in seen or not file.exists():
        return
    seen.add((file, name))
    defined, imported = _names(file)
    if name in imported:
        yield from _parts(*imported[name], seen)
    for node in defined.get(name, ()):
        yield ast.unparse(node)
        used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        used |= {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
        for one in sorted(used):
            yield from _parts(file, one, seen)


@functools.cache
def _names(file: Path) -> tuple[dict[str, list[ast.stmt]], dict[str, tuple[Path, str]]]:
    """What a module defines, its fixtures among it, and what it imports from other modules of the tests."""
    defined: dict[str, list[ast.stmt]] = {}
    imported: dict[str, tuple[Path, str]] = {}
    conftest = file.parent / "conftest.py"
    if file.name != "conftest.py" and conftest.exists():
        imported |= {name: (conftest, name) for name in _names(conftest)[0]}
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    defined.setdefault(target.id, []).append(node)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests"):
            module = TESTS.parent / f"{(node.module or '').replace('.', '/')}.py"
            imported |= {one.asname or one.name: (module, one.name) for one in node.names}
    return defined, imported
