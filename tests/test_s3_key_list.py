"""Every key of the S3 sink, and the tests that exercise it.

A key that is declared and not listed here fails, as does one whose test is gone or no longer names it. To add
a key: declare it, write a test that sets it, add it to its test below.
"""

from __future__ import annotations

from typing import Final

import pytest

from icestream.connectors.s3.keys import S3_SINK, WITHOUT_EFFECT
from tests.test_iceberg_key_list import TESTS, mentions, source_of

KEYS: Final = "behaviours/test_s3_keys.py"
LEDGER: Final = "behaviours/test_s3_ledger.py"
UNIT: Final = "unit/connectors/s3"

TESTED: Final = {
    f"{KEYS}::test_the_bucket_is_in_the_path_or_in_the_name_of_the_host": (
        "s3.bucket.name",
        "s3.region",
        "aws.access.key.id",
        "aws.secret.access.key",
        "s3.path.style.access.enabled",
        "s3.wan.mode",
    ),
    f"{KEYS}::test_a_store_that_takes_no_tags": (
        "store.url",
        "s3.object.behavior.on.tagging.error",
    ),
    f"{KEYS}::test_ledger_and_objects_are_written_on_condition": ("storage.class",),
    f"{LEDGER}::test_a_store_without_conditions_is_refused": (
        "format.class",
        "icestream.s3.at-least-once",
    ),
    f"{LEDGER}::test_objects_have_the_names_and_borders_of_confluents": ("flush.size",),
    f"{UNIT}/test_record_by_record.py::test_a_reader_finds_what_the_rules_say": (
        "rotate.interval.ms",
        "rotate.file.on.partition.change",
        "partitioner.class",
        "partition.field.name",
    ),
    f"{UNIT}/test_schedule.py::test_the_keys_of_the_clock_say_when_what_waits_is_written": (
        "rotate.schedule.interval.ms",
        "timezone",
        "icestream.s3.commit.interval.ms",
    ),
    f"{UNIT}/test_partitioners.py::test_time_of_the_record": (
        "partition.duration.ms",
        "path.format",
        "timestamp.extractor",
    ),
    f"{UNIT}/test_partitioners.py::test_settings_that_make_no_partitioner": ("locale",),
    f"{UNIT}/test_partitioners.py::test_a_field_tells_the_time": ("timestamp.field",),
    f"{UNIT}/test_objects.py::test_parts_of_names_as_configured": (
        "topics.dir",
        "directory.delim",
        "file.delim",
        "filename.offset.zero.pad.width",
    ),
    f"{KEYS}::test_parts_have_their_size_and_a_digest_if_asked_for": (
        "s3.part.size",
        "s3.send.digest",
    ),
    f"{UNIT}/test_objects.py::test_gzip_at_every_level": (
        "s3.compression.type",
        "s3.compression.level",
    ),
    f"{UNIT}/test_formats.py::test_avro_files": ("avro.codec",),
    f"{UNIT}/test_formats.py::test_parquet_files": ("parquet.codec",),
    f"{UNIT}/test_formats.py::test_structs_as_json_lines": ("json.decimal.format",),
    f"{UNIT}/test_partitioners.py::test_settings_whose_names_lead_elsewhere": (
        "format.bytearray.extension",
        "tombstone.encoded.partition",
    ),
    f"{UNIT}/test_formats.py::test_bytes_with_a_separator": ("format.bytearray.separator",),
    f"{UNIT}/test_formats.py::test_schemas_that_may_share_an_object": ("schema.compatibility",),
    f"{KEYS}::test_keys_of_parts_that_java_has_and_we_do_not_are_taken_and_said_to_have_no_effect": (
        "schemas.cache.config",
        "s3.retry.backoff.ms",
        "s3.http.send.expect.continue",
        "s3.elastic.buffer.enable",
        "s3.elastic.buffer.init.capacity",
        "max.write.duration.ms",
        "enable.conditional.writes",
        "partitioner.max.open.files",
        "max.files.scan.limit",
        "schema.generator.class",
        "hive.integration",
        "shutdown.timeout.ms",
    ),
    f"{UNIT}/test_formats.py::test_avro_without_what_connect_knows": (
        "enhanced.avro.schema.support",
        "connect.meta.data",
    ),
    f"{UNIT}/test_formats.py::test_optional_keys_of_maps": ("allow.optional.map.keys",),
    f"{UNIT}/test_objects.py::test_records_without_a_value_fail_the_task": ("behavior.on.null.values",),
    f"{UNIT}/test_objects.py::test_records_without_a_value_are_ignored": ("report.null.values.to.dlq",),
    f"{UNIT}/test_formats.py::test_keys_and_headers_have_objects_of_their_own": (
        "store.kafka.keys",
        "keys.format.class",
        "store.kafka.headers",
        "headers.format.class",
    ),
    f"{KEYS}::test_a_role_is_assumed_with_the_keys_of_the_config": (
        "s3.credentials.provider.class",
        "s3.credentials.provider.sts.role.arn",
        "s3.credentials.provider.sts.role.session.name",
        "s3.credentials.provider.sts.role.external.id",
        "s3.credentials.provider.sts.region",
    ),
    f"{KEYS}::test_acl_and_encryption_are_asked_for": (
        "s3.ssea.name",
        "s3.sse.kms.key.id",
        "s3.acl.canned",
    ),
    f"{KEYS}::test_a_key_of_the_customer_goes_with_every_part": ("s3.sse.customer.key",),
    f"{KEYS}::test_tags_tell_offsets_and_records": (
        "s3.object.tagging",
        "s3.object.tagging.key.value.pairs",
    ),
    f"{KEYS}::test_requests_are_tried_again": ("s3.part.retries",),
    f"{KEYS}::test_a_proxy_gets_the_requests_with_its_login": (
        "s3.proxy.url",
        "s3.proxy.user",
        "s3.proxy.password",
    ),
    f"{UNIT}/test_partitioners.py::test_the_name_of_the_schema_in_the_path": (
        "s3.schema.partition.affix.type",
    ),
    f"{UNIT}/test_clouds.py::test_a_file_with_a_login_is_one_that_the_worker_allows": (
        "gcs.credentials.path",
        "gcs.credentials.json",
    ),
    f"{UNIT}/test_clouds.py::test_azure_elsewhere_gets_no_login_of_the_worker": (
        "azblob.sas.token",
        "icestream.s3.endpoint",
    ),
    "clouds.py::cloud_config": ("azblob.account.name", "azblob.account.key"),
    f"{LEDGER}::test_objects_may_be_replaced_where_the_config_says_so": ("icestream.s3.existing.objects",),
    f"{KEYS}::test_the_first_pause_after_an_error_is_that_of_the_config": ("retry.backoff.ms",),
}
ALL: Final = {key: place for place, keys in TESTED.items() for key in keys}


def test_every_declared_key_is_listed_and_every_listed_key_is_declared() -> None:
    assert set(S3_SINK.names) == ALL.keys()


@pytest.mark.parametrize("key", sorted(ALL))
def test_a_key_has_a_test_that_sets_it(key: str) -> None:
    file, _, name = ALL[key].partition("::")
    text = source_of(TESTS / file, name)
    assert text, f"{ALL[key]} does not exist; name another test of {key}"
    assert mentions(text, key), f"{ALL[key]} does not set {key}; name a test that does"


def test_the_page_on_compatibility_tells_of_each_key_without_effect() -> None:
    page = (TESTS.parent / "docs" / "compatibility.md").read_text()
    assert [key for key in WITHOUT_EFFECT if f"`{key}`" not in page] == []
