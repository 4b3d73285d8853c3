"""`iceberg.hadoop.*` and `iceberg.hadoop-conf-dir` in the words of Iceberg's catalogs; what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from icestream.api.errors import ConfigError
from icestream.connectors.iceberg.catalogs.hadoop_settings import with_hadoop
from icestream.connectors.iceberg.catalogs.java_catalogs import java_catalog
from icestream.connectors.iceberg.catalogs.opening import catalog_properties
from icestream.connectors.iceberg.plugin import IcebergPlugin
from icestream.connectors.iceberg.settings import problems, warnings

CATALOG = {
    "iceberg.tables": "ns.t",
    "iceberg.catalog.type": "rest",
    "iceberg.catalog.uri": "http://catalog",
}
STORE = {
    "fs.s3a.endpoint": "minio:9000",
    "fs.s3a.connection.ssl.enabled": "false",
    "fs.s3a.path.style.access": "true",
    "fs.s3a.access.key": "me",
    "fs.s3a.secret.key": "s3cret",
}
MAPPED = {
    "s3.endpoint": "http://minio:9000",
    "s3.path-style-access": "true",
    "s3.access-key-id": "me",
    "s3.secret-access-key": "s3cret",
}


def hadoop(settings: dict[str, str]) -> dict[str, str]:
    return {**CATALOG, **{f"iceberg.hadoop.{key}": value for key, value in settings.items()}}


def xml(settings: dict[str, str], before: str = "") -> str:
    inner = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in settings.items())
    return f'<?xml version="1.0"?>{before}<configuration>{inner}</configuration>'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "hadoop"
    made.mkdir()
    return made


def in_folder(folder: Path) -> dict[str, str]:
    return {**CATALOG, "iceberg.hadoop-conf-dir": str(folder)}


# -- iceberg.hadoop.* --


def test_an_object_store_in_hadoops_words_is_one_in_icebergs() -> None:
    config = hadoop({**STORE, "fs.s3a.endpoint.region": "eu-1", "fs.s3a.session.token": "t"})
    assert problems(config) == [] and warnings(config) == []
    found = catalog_properties(config)
    assert found["s3.endpoint"] == "http://minio:9000"
    assert found["s3.force-virtual-addressing"] == "false"
    assert (found["s3.access-key-id"], found["s3.secret-access-key"]) == ("me", "s3cret")
    assert (found["s3.session-token"], found["s3.region"]) == ("t", "eu-1")
    assert java_catalog(config).properties["s3.endpoint"] == "http://minio:9000"


@pytest.mark.parametrize(
    ("settings", "key", "value"),
    [
        ({"fs.s3a.endpoint": "a:1"}, "s3.endpoint", "https://a:1"),
        ({"fs.s3a.endpoint": "http://a:1"}, "s3.endpoint", "http://a:1"),
        ({"fs.s3a.proxy.host": "p", "fs.s3a.proxy.port": "3128"}, "s3.proxy-uri", "http://p:3128"),
        ({"fs.s3a.connection.establish.timeout": "5000"}, "s3.connect-timeout", "5.0"),
        ({"fs.s3a.connection.request.timeout": "30s"}, "s3.request-timeout", "30.0"),
        (
            {"fs.s3a.assumed.role.arn": "arn:aws:iam::1:role/r"},
            "client.assume-role.arn",
            "arn:aws:iam::1:role/r",
        ),
        (
            {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            "s3.anonymous",
            "true",
        ),
    ],
)
def test_each_key_has_its_counterpart(settings: dict[str, str], key: str, value: str) -> None:
    assert with_hadoop(hadoop(settings))[key] == value


def test_the_catalogs_own_keys_win() -> None:
    config = {**hadoop(STORE), "iceberg.catalog.s3.endpoint": "http://mine"}
    assert catalog_properties(config)["s3.endpoint"] == "http://mine"


def test_a_metastore_is_found_by_hives_own_key() -> None:
    config = hadoop({"hive.metastore.uris": "thrift://a:9083", "hive.metastore.warehouse.dir": "s3://w"})
    config |= {"iceberg.catalog.type": "hive"}
    del config["iceberg.catalog.uri"]
    found = catalog_properties(config)
    assert (found["type"], found["uri"], found["warehouse"]) == ("hive", "thrift://a:9083", "s3://w")
    # Of no other catalog.
    assert catalog_properties({**config, **CATALOG})["uri"] == "http://catalog"


@pytest.mark.parametrize(
    ("key", "value", "instead"),
    [
        ("fs.s3a.encryption.algorithm", "SSE-KMS", "in the bucket's own settings"),
        ("fs.s3a.bucket.lake.endpoint", "http://x", "set iceberg.catalog.s3.*"),
        ("fs.s3a.security.credential.provider.path", "jceks://file/x", "s3.access-key-id"),
        ("fs.s3a.something.new", "x", "set iceberg.catalog.s3.*"),
        ("fs.azure.account.key.me.dfs.core.windows.net", "k", "adls.account-name"),
        ("fs.gs.auth.type", "x", "set iceberg.catalog.gcs.*"),
        ("hadoop.security.authentication", "kerberos", "Kerberos"),
        ("hive.metastore.sasl.enabled", "true", "REST catalog"),
        ("fs.defaultFS", "hdfs://nn:8020", "iceberg.catalog.warehouse"),
        ("dfs.nameservices", "x", "HDFS"),
    ],
)
def test_what_has_no_counterpart_is_a_problem_that_says_what_to_set(
    key: str, value: str, instead: str
) -> None:
    (problem,) = problems(hadoop({key: value}))
    assert problem.key == f"iceberg.hadoop.{key}"
    assert problem.message.startswith(f"'iceberg.hadoop.{key}' cannot be honoured; ")
    assert instead in problem.message


def test_what_is_of_no_consequence_is_a_warning() -> None:
    config = hadoop({"fs.s3a.threads.max": "20", "fs.s3a.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"})
    assert problems(config) == []
    assert [one.split("'")[1] for one in warnings(config)] == [
        "iceberg.hadoop.fs.s3a.threads.max",
        "iceberg.hadoop.fs.s3a.impl",
    ]


def test_a_login_class_is_not_loaded() -> None:
    with pytest.raises(ConfigError, match="'Run' is a class, which cannot be loaded"):
        with_hadoop(hadoop({"fs.s3a.aws.credentials.provider": "attack.Run"}))


# -- iceberg.hadoop-conf-dir --


def test_a_folder_of_hadoop_is_read(folder: Path) -> None:
    (folder / "core-site.xml").write_text(
        xml({**STORE, "fs.defaultFS": "hdfs://nn", "fs.s3a.threads.max": "1"})
    )
    (folder / "hdfs-site.xml").write_text(xml({"dfs.replication": "3"}))
    found = with_hadoop(in_folder(folder))
    assert {key: found[key] for key in MAPPED} == MAPPED
    # The connector's own keys are above the files.
    mine = {**in_folder(folder), "iceberg.hadoop.fs.s3a.access.key": "other"}
    assert with_hadoop(mine)["s3.access-key-id"] == "other"


def test_what_matters_in_its_files_is_not_lost(folder: Path) -> None:
    (folder / "core-site.xml").write_text(xml({"fs.s3a.encryption.algorithm": "SSE-KMS"}))
    with pytest.raises(
        ConfigError, match=r"'fs\.s3a\.encryption\.algorithm' in its files cannot be honoured"
    ):
        with_hadoop(in_folder(folder))


def test_what_hadoop_would_put_in_is_not_taken_as_it_is(folder: Path) -> None:
    (folder / "core-site.xml").write_text(xml({"fs.s3a.access.key": "${env.KEY}"}))
    with pytest.raises(ConfigError, match=r"write its value without \$\{"):
        with_hadoop(in_folder(folder))
    mine = {**in_folder(folder), "iceberg.hadoop.fs.s3a.access.key": "me"}
    assert with_hadoop(mine)["s3.access-key-id"] == "me"


def test_only_folders_that_the_operator_named_are_read(folder: Path, tmp_path: Path) -> None:
    plugin = IcebergPlugin()
    (problem,) = plugin.not_allowed(in_folder(folder), {})
    assert problem.key == "iceberg.hadoop-conf-dir"
    assert "icestream.hadoop.conf.folders" in problem.message
    worker = {"icestream.hadoop.conf.folders": f"{tmp_path}/other,{folder}"}
    assert plugin.not_allowed(in_folder(folder), worker) == []
    assert plugin.not_allowed(in_folder(folder / "below"), worker) == []
    assert plugin.not_allowed(in_folder(folder / ".." / "secret"), worker) != []
    (tmp_path / "secret").mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    assert plugin.not_allowed(in_folder(folder / "link"), worker) != []
    assert plugin.not_allowed(CATALOG, {}) == []


BOMB = '<!DOCTYPE a [<!ENTITY x "xxxxxxxxxx"><!ENTITY y "&x;&x;&x;&x;&x;&x;">]>'
FILE = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (xml({"fs.s3a.access.key": "&y;"}, BOMB), "document type declaration"),
        (xml({"fs.s3a.access.key": "&x;"}, FILE), "document type declaration"),
        (
            '<configuration xmlns:xi="http://www.w3.org/2001/XInclude">'
            '<xi:include href="/etc/passwd" parse="text"/></configuration>',
            "includes another file",
        ),
        ("root:x:0:0:s3cret", "it is no XML"),
    ],
)
def test_hostile_files_are_not_taken_and_not_told(folder: Path, text: str, reason: str) -> None:
    (folder / "core-site.xml").write_text(text)
    with pytest.raises(ConfigError, match=reason) as caught:
        with_hadoop(in_folder(folder))
    assert "s3cret" not in str(caught.value) and "root:" not in str(caught.value)


def test_no_pipe_is_waited_for_and_no_folder_is_empty(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is none of core-site\.xml"):
        with_hadoop(in_folder(folder))
    os.mkfifo(folder / "core-site.xml")
    with pytest.raises(ConfigError, match=r"'core-site\.xml' there cannot be read: it is not a regular file"):
        with_hadoop(in_folder(folder))
