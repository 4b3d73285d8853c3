"""What is said of a config of the Delta sink before anything is opened, and what its tables are asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.api.config import Config
from icestream.connectors.delta import settings
from icestream.connectors.delta.plugin import DeltaPlugin
from icestream.connectors.delta.storage import Storage, file_path, table_uri
from icestream.connectors.delta.table_settings import location_of
from icestream.plugins import find_connector
from tests.unit.connectors.delta.lake import Lake, ids

GOOD: Config = {"delta.tables": "a.b", "delta.location": "/lake"}


def said(more: Config) -> list[str]:
    return [f"{one.key}: {one}" for one in settings.problems({**GOOD, **more})]


def test_the_class_is_found_by_its_short_names() -> None:
    for name in ("io.icestream.connect.delta.DeltaSinkConnector", "DeltaSinkConnector", "DeltaSink"):
        assert isinstance(find_connector(name).plugin, DeltaPlugin)


def test_a_good_config_is_good() -> None:
    assert said({}) == []
    assert said({"delta.location": "s3://bucket/folder"}) == []
    assert said({"delta.location": "file:///lake", "delta.tables": "bare,a.b.c"}) == []


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("delta.tables", "", "'delta.tables' is missing"),
        ("delta.tables", "../etc", "cannot be"),
        ("delta.tables", "a..b", "cannot be"),
        ("delta.tables", "a/b", "cannot be"),
        ("delta.location", "", "'delta.location' is missing"),
        ("delta.location", "lake", "begin with '/'"),
        ("delta.location", "/", "begin with '/'"),
        ("delta.location", "/lake/../etc", "leads upwards"),
        ("delta.location", "s3://bucket", "lacks bucket or folder"),
        ("delta.location", "gs://bucket/folder", "neither a folder of this machine nor S3"),
        ("delta.location", "abfss://c@a.net/folder", "neither a folder of this machine nor S3"),
        ("delta.location", "file://host/lake", "neither a folder of this machine nor S3"),
        ("delta.location", "s3://id:secret@bucket/folder", "parts that a folder has not"),
        ("delta.table.a.b.location", "lake", "begin with '/'"),
        ("delta.storage.s3.endpoint", "minio:9000", "lacks its scheme"),
        ("delta.storage.s3.access-key-id", "me", "secret-access-key' is missing"),
        ("delta.storage.s3.secret-access-key", "me", "access-key-id' is missing"),
        ("delta.tables.auto-create-props.icestream.x", "1", "kept for jobs"),
        ("delta.tables.auto-create-props.delta.targetFileSize", "1mb", "write a number of bytes"),
        ("delta.tables.write-props.delta.parquet.compression.codec", "lzo", "one of zstd"),
        ("delta.tables.write-props.delta.appendOnly", "true", "none that decides how files are written"),
        ("delta.tables.route-template", "x.${topic}", "names tables by records"),
        ("delta.tables.dynamic-enabled", "true", "names tables by records"),
    ],
)
def test_what_is_wrong_is_said(key: str, value: str, expected: str) -> None:
    found = said({key: value})
    assert any(expected in one for one in found), found
    assert not any("secret@" in one for one in found)


def test_records_may_name_tables_without_a_namespace() -> None:
    config = {"delta.location": "/lake", "delta.tables.route-template": "${topic}"}
    assert settings.problems(config) == []
    plan = settings.ROUTES.plan(config, [])
    assert plan is not None and plan.bare_names
    assert settings.tables(config) == []


def test_settings_of_single_tables_are_known() -> None:
    known = settings.definition({**GOOD, "delta.tables": "a.b,c"})
    for name in ("location", "partition-by", "id-columns", "route-regex"):
        assert known.knows(f"delta.table.a.b.{name}") and known.knows(f"delta.table.c.{name}")
    by_records = {"delta.tables.route-template": "${topic}", "delta.table.x.partition-by": "day"}
    assert settings.definition(by_records).knows("delta.table.x.partition-by")


@pytest.mark.parametrize(
    ("location", "uri", "path"),
    [
        ("/lake/a b", "/lake/a b/t/u", "/lake/a b/t/u"),
        ("file:///lake/a%20b/", "/lake/a b/t/u", "/lake/a b/t/u"),
        ("s3://bucket/folder/", "s3://bucket/folder/t/u", "bucket/folder/t/u"),
        ("s3a://bucket/folder", "s3://bucket/folder/t/u", "bucket/folder/t/u"),
    ],
)
def test_both_sides_find_a_table_at_the_same_place(location: str, uri: str, path: str) -> None:
    place = location_of({"delta.location": location}, "t.u")
    assert (table_uri(place), file_path(place)) == (uri, path)


def test_storage_options_never_show_a_secret() -> None:
    config = {
        "delta.storage.s3.endpoint": "http://minio:9000",
        "delta.storage.s3.region": "eu-west-1",
        "delta.storage.s3.access-key-id": "me",
        "delta.storage.s3.secret-access-key": "very secret",
        "delta.storage.s3.session-token": "token secret",
        "delta.storage.s3.path-style-access": "false",
    }
    assert settings.DELTA_SINK.parse({**GOOD, **config})["delta.storage.s3.region"] == "eu-west-1"
    storage = Storage.from_config(config)
    assert "secret" not in repr(storage).replace("secret_access_key", "")
    assert storage.for_delta("/lake") == {}
    options = storage.for_delta("s3://bucket/folder")
    assert options["AWS_SECRET_ACCESS_KEY"] == "very secret"
    assert options["AWS_SESSION_TOKEN"] == "token secret"
    assert (options["AWS_REGION"], options["AWS_ALLOW_HTTP"]) == ("eu-west-1", "true")
    assert options["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] == "true"
    assert options["AWS_S3_ALLOW_UNSAFE_RENAME"] == "false"


def test_folders_of_the_machine_are_those_that_the_worker_allows(tmp_path: Path) -> None:
    plugin, worker = DeltaPlugin(), {"icestream.delta.folders": f"/srv,{tmp_path}/lake"}
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "out").symlink_to("/etc")

    def refused(config: Config, worker: Config = worker) -> list[str]:
        return [problem.key for problem in plugin.not_allowed(config, worker)]

    assert refused({"delta.location": f"{tmp_path}/lake/x", "delta.tables": "t"}) == []
    assert refused({"delta.location": "s3://bucket/lake"}, {}) == []
    assert refused({"delta.location": "/srv/x"}, {}) == ["delta.location"]
    assert refused({"delta.location": "file:///srv/%2e%2e/etc"}) == ["delta.location"]
    assert refused({"delta.location": f"{tmp_path}/lake/out/x"}) == ["delta.location"]
    own = {"delta.tables": "t", "delta.location": "/srv", "delta.table.t.location": "/etc/t"}
    assert refused(own) == ["delta.table.t.location"]


def test_a_bucket_without_an_endpoint_is_at_aws() -> None:
    config = {"delta.location": "s3://bucket/lake", "delta.tables": "t", "delta.table.t.location": "/srv/t"}
    assert dict(DeltaPlugin().place_addresses(config)) == {
        "delta.location": "https://s3.amazonaws.com",
        "delta.table.t.location": "",
    }
    elsewhere = {**config, "delta.storage.s3.endpoint": "http://minio:9000"}
    assert not any(dict(DeltaPlugin().place_addresses(elsewhere)).values())


def test_a_field_that_names_the_kind_of_change_makes_upserts(lake: Lake) -> None:
    plain = lake.sink().commit_seconds
    lake.config |= {"delta.tables.cdc-field": "op", "delta.table.ns.t.id-columns": "id"}
    # A merge may take long, and so may a commit.
    assert lake.sink().commit_seconds == 3600.0 != plain


def test_commits_follow_the_config() -> None:
    options = DeltaPlugin().options(
        {
            **GOOD,
            "delta.control.commit.interval-ms": "5000",
            "delta.control.commit.timeout-ms": "7000",
            "delta.control.commit.threads": "3",
            "delta.control.commit.max-consecutive-failures": "9",
            "delta.connect.group-id": "group",
            "delta.coordinator.transactional.prefix": "prefix-",
        }
    )
    assert (options.commit_seconds, options.commit_answer_seconds) == (5.0, 7.0)
    assert (options.commit_threads, options.most_failed_commits) == (3, 9)
    assert (options.group, options.transactional_prefix) == ("group", "prefix-")


def test_validate_opens_the_tables(lake: Lake, tmp_path: Path) -> None:
    lake.land(ids(0, 1))
    probes = list(DeltaPlugin().probes(lake.config, {}))
    assert [list(probe.ask(probe)) for probe in probes] == [[]]
    missing = {**lake.config, "delta.tables": "no.where", "delta.tables.auto-create-enabled": "false"}
    ((probe,), expected) = list(DeltaPlugin().probes(missing, {})), "create it first"
    (problem,) = probe.ask(probe)
    assert problem.key == "delta.tables" and expected in problem.message


def test_what_is_no_folder_is_said_once_and_without_its_login() -> None:
    place = "https://me:secret@host/folder"
    assert DeltaPlugin().not_allowed({**GOOD, "delta.location": place}, {}) == []
    (one,) = said({"delta.location": place})
    assert "neither a folder of this machine nor S3" in one and "secret" not in one
