"""Catalog settings in Java's names, as PyIceberg takes them; what is refused, and that it tells no secret."""

import socket
import sys

import pytest

from icestream.api.errors import ConfigError, SinkUnavailable
from icestream.cluster.configs.allowed_hosts import host_problems
from icestream.connectors.iceberg.catalogs.java_catalogs import java_catalog
from icestream.connectors.iceberg.catalogs.opening import (
    catalog_name,
    catalog_properties,
    open_catalog,
)
from icestream.connectors.iceberg.plugin import IcebergPlugin
from icestream.embedded.ports import free_port

POSTGRESQL = "jdbc:postgresql://db:5432/iceberg"


def properties(**settings: str) -> dict[str, str]:
    return catalog_properties(
        {
            f"iceberg.catalog.{key.replace('__', '-').replace('_', '.')}": value
            for key, value in settings.items()
        }
    )


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("jdbc:sqlite:/data/catalog.db", "sqlite:////data/catalog.db"),
        ("jdbc:sqlite:catalog.db", "sqlite:///catalog.db"),
        ("jdbc:sqlite:file:/data/catalog.db?cache=shared", "sqlite:////data/catalog.db"),
        (POSTGRESQL, "postgresql+psycopg2://db:5432/iceberg?connect_timeout=15&tcp_user_timeout=60000"),
        ("sqlite:////data/catalog.db", "sqlite:////data/catalog.db"),
        # Without a driver SQLAlchemy would take one that is not installed with us.
        (
            "postgresql://u:p@db/iceberg?sslmode=require",
            "postgresql+psycopg2://u:p@db/iceberg?sslmode=require",
        ),
    ],
)
def test_jdbc_addresses_are_translated(uri: str, expected: str) -> None:
    for kind in ("jdbc", "sql", "JDBC"):
        assert properties(type=kind, uri=uri)["uri"] == expected


def test_login_and_parameters_come_from_the_address_or_from_their_keys() -> None:
    uri = f"{POSTGRESQL}?user=a&password=b/c&sslmode=require&connectTimeout=5"
    expected = "postgresql+psycopg2://a:b%2Fc@db:5432/iceberg?connect_timeout=5&tcp_user_timeout=60000&sslmode=require"
    assert properties(type="jdbc", uri=uri)["uri"] == expected
    given = properties(type="jdbc", uri=uri, jdbc_user="x", jdbc_password="y@z", jdbc_sslmode="disable")
    assert (
        given["uri"]
        == "postgresql+psycopg2://x:y%40z@db:5432/iceberg?connect_timeout=5&tcp_user_timeout=60000&sslmode=disable"
    )
    assert not any(key.startswith("jdbc") for key in given)


def test_addresses_of_mysql_and_mariadb_are_translated() -> None:
    limits = "connect_timeout=15&read_timeout=60&write_timeout=60&charset=utf8mb4"
    for scheme in ("mysql", "mariadb"):
        uri = f"jdbc:{scheme}://db:3306/iceberg"
        assert properties(type="jdbc", uri=uri)["uri"] == f"mysql+pymysql://db:3306/iceberg?{limits}"
        given = properties(
            type="jdbc", uri=f"{uri}?sslMode=REQUIRED&useUnicode=true", jdbc_user="a", jdbc_password="b/c"
        )
        assert given["uri"] == f"mysql+pymysql://a:b%2Fc@db:3306/iceberg?{limits}&ssl_check_hostname=false"
    checked = properties(
        type="jdbc", uri="jdbc:mariadb://db/x", jdbc_sslMode="verify-full", jdbc_serverSslCert="/ca.pem"
    )
    assert checked["uri"].endswith("&ssl_ca=%2Fca.pem&ssl_check_hostname=true")
    short = properties(type="jdbc", uri="jdbc:mysql://db/x?socketTimeout=5000")["uri"]
    assert "read_timeout=5&write_timeout=5" in short


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("jdbc:mysql://(host=evil,port=1)/x", "must have one host"),
        ("jdbc:mysql://allowed,evil/x", "must have one host"),
        ("jdbc:mysql:replication://a/x", "Invalid value 'jdbc:mysql:…'"),
        ("jdbc:mysql://db/x?allowLoadLocalInfile=true", "jdbc.allowLoadLocalInfile: this parameter"),
        ("jdbc:mysql://db/x?sslMode=VERIFY_CA", "jdbc.sslMode: the certificate"),
        ("jdbc:mysql://db/x?sslMode=maybe", "jdbc.sslMode: 'maybe' cannot be used"),
        ("mysql://db/x?read_default_file=/etc/passwd", "'read_default_file' is not among"),
        ("mysql+mysqldb://db/x", "Invalid value 'mysql+mysqldb:…'"),
    ],
)
def test_mysql_has_one_host_and_the_parameters_of_the_list(uri: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        properties(type="jdbc", uri=uri)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "uri",
    [
        # To urlsplit a fragment; to SQLAlchemy and Java's drivers parameters, which read files and load code.
        "mysql://db/x#?local_infile=1",
        "postgresql://db/x#?host=evil",
        "jdbc:postgresql://db/x#?socketFactory=evil.Factory",
        "jdbc:mariadb://db/x#?socketFactory=evil.Factory",
        # Two hosts, of which one is checked and the other one reached.
        "postgresql://db#@evil/x",
        "postgresql://db?@evil/x",
        "mysql://db:3306/x@evil/y",
        "jdbc:postgresql://db/x/y@evil",
        "jdbc:mysql://db/x\t?useSSL=true",
        "jdbc:postgresql://db/x#",
    ],
)
def test_an_address_that_drivers_read_in_several_ways_is_refused(uri: str) -> None:
    with pytest.raises(ConfigError, match="in more than one way"):
        properties(type="jdbc", uri=uri)
    with pytest.raises(ConfigError, match="in more than one way"):
        java_catalog({"iceberg.catalog.type": "jdbc", "iceberg.catalog.uri": uri})


def test_a_sign_in_a_parameter_moves_no_host() -> None:
    with pytest.raises(ConfigError, match="as %40"):
        properties(type="jdbc", uri="postgresql://db:5432/x?options=@evil/y")


def test_a_parameter_without_a_value_is_one_all_the_same() -> None:
    with pytest.raises(ConfigError, match=r"jdbc\.allowLocalInfile: this parameter"):
        properties(type="jdbc", uri="jdbc:mariadb://db/x?allowLocalInfile")


def test_java_gets_no_more_of_an_address_than_was_checked() -> None:
    for uri in ("jdbc:sqlite:file:/a.db?enable_load_extension=true", "sqlite+pysqlite:////a.db"):
        found = java_catalog({"iceberg.catalog.type": "jdbc", "iceberg.catalog.uri": uri})
        assert found.properties["uri"] == "jdbc:sqlite:/a.db"
    for uri in ("jdbc:sqlite::resource:http://evil/a.db", "sqlite:///:resource:http://evil/a.db"):
        with pytest.raises(ConfigError, match="must not begin with a colon"):
            properties(type="jdbc", uri=uri)


def test_a_login_of_its_own_keys_replaces_the_one_in_the_address() -> None:
    uri = properties(type="jdbc", uri="jdbc:postgresql://x:y@db/z", jdbc_user="a", jdbc_password="b")["uri"]
    assert uri.startswith("postgresql+psycopg2://a:b@db/z?")


def test_the_class_name_decides_before_the_type() -> None:
    for implementation, kind, uri in (
        ("org.apache.iceberg.jdbc.JdbcCatalog", "sql", POSTGRESQL),
        ("org.apache.iceberg.rest.RESTCatalog", "rest", "http://a"),
        ("org.apache.iceberg.hive.HiveCatalog", "hive", "thrift://a:9083"),
        ("org.apache.iceberg.aws.glue.GlueCatalog", "glue", ""),
        ("org.apache.iceberg.aws.dynamodb.DynamoDbCatalog", "dynamodb", ""),
    ):
        assert properties(catalog__impl=implementation, uri=uri)["type"] == kind


def test_settings_of_rest_and_s3_keep_their_names_but_for_two() -> None:
    given = catalog_properties(
        {
            "iceberg.catalog.type": "rest",
            "iceberg.catalog.uri": "http://catalog/_iceberg",
            "iceberg.catalog.warehouse": "kafkawarehouse",
            "iceberg.catalog.rest.sigv4-enabled": "true",
            "iceberg.catalog.rest.signing-name": "s3tables",
            "iceberg.catalog.s3.endpoint": "http://s3",
            "iceberg.catalog.s3.path-style-access": "true",
            "iceberg.catalog.client.region": "us-east-1",
            "iceberg.catalog.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        }
    )
    assert given == {
        "type": "rest",
        "uri": "http://catalog/_iceberg",
        "warehouse": "kafkawarehouse",
        "rest.sigv4-enabled": "true",
        "rest.signing-name": "s3tables",
        "s3.endpoint": "http://s3",
        "s3.force-virtual-addressing": "false",
        "s3.region": "us-east-1",
    }


def test_the_name_is_that_of_the_java_sink() -> None:
    assert catalog_name({"iceberg.catalog": "mine", "iceberg.catalog.name": "other"}) == "mine"
    assert catalog_name({"iceberg.catalog.name": "other"}) == catalog_name({}) == "iceberg"
    assert "name" not in properties(type="rest", uri="http://a", name="a")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"type": "nessie"},
            "Invalid value 'nessie' for iceberg.catalog.type: this version opens rest, sql, jdbc, hive, glue",
        ),
        ({"type": "rest"}, "iceberg.catalog.uri: the catalog's address is missing; set it"),
        (
            {"type": "jdbc", "uri": "jdbc:oracle:thin://a:s3cret@db/x"},
            "Invalid value 'jdbc:oracle:…': use jdbc:sqlite",
        ),
        (
            {"type": "jdbc", "uri": f"{POSTGRESQL}?password=s3cret&loggerLevel=x"},
            "jdbc.loggerLevel: this param",
        ),
    ],
)
def test_what_cannot_be_opened_is_refused_without_its_secrets(
    settings: dict[str, str], sentence: str
) -> None:
    config = {f"iceberg.catalog.{key}": value for key, value in settings.items()}
    with pytest.raises(ConfigError) as caught:
        open_catalog(config)
    assert sentence in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_rest_catalog_that_never_answers_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = {
            "iceberg.catalog.type": "rest",
            "iceberg.catalog.uri": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "iceberg.catalog.rest.client.socket-timeout-ms": "200",
        }
        with pytest.raises(SinkUnavailable, match="opening catalog 'iceberg'"):
            open_catalog(config)


def test_a_catalog_that_cannot_be_reached_is_named_by_its_address() -> None:
    uri = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(SinkUnavailable) as refused:
        open_catalog({"iceberg.catalog.type": "rest", "iceberg.catalog.uri": f"{uri}/some/path"})
    assert str(refused.value) == f"opening catalog 'iceberg': {uri} cannot be reached (Connection refused)"


@pytest.mark.parametrize(
    ("settings", "module", "extra"),
    [
        ({"type": "jdbc", "uri": POSTGRESQL}, "psycopg2", "postgres"),
        ({"type": "jdbc", "uri": "jdbc:mysql://db/x"}, "pymysql", "mysql"),
        ({"type": "glue", "client.region": "us-east-1"}, "boto3", "aws"),
        ({"type": "dynamodb", "client.region": "us-east-1"}, "boto3", "aws"),
        ({"type": "hive", "uri": "thrift://a:9083"}, "thrift", "hive"),
        ({"type": "rest", "uri": "http://a", "rest.sigv4-enabled": "true"}, "boto3", "aws"),
    ],
)
def test_what_is_not_installed_is_named_with_its_extra(
    settings: dict[str, str], module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = (
        "icestream.connectors.iceberg.catalogs.hive_catalog",
        "icestream.connectors.iceberg.catalogs.aws_catalogs",
    )
    for name in list(sys.modules):
        if name in ours or name.startswith(
            (f"{module}.", "pyiceberg.catalog.hive", "pyiceberg.catalog.glue")
        ):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=rf"'{module}' is missing; .* 'icestream\[{extra}\]'"):
        open_catalog({f"iceberg.catalog.{key}": value for key, value in settings.items()})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("iceberg.catalog.uri", "jdbc:mysql://inner:3306/db"),
        ("iceberg.catalog.uri", "thrift://allowed:9083,thrift://inner:9083"),
        ("iceberg.catalog.glue.endpoint", "http://inner"),
        ("iceberg.catalog.dynamodb.endpoint", "http://inner"),
        ("iceberg.catalog.oauth2-server-uri", "http://inner/token"),
        ("iceberg.hadoop.fs.s3a.endpoint", "inner:9000"),
        ("iceberg.hadoop.fs.s3a.proxy.host", "inner"),
        ("iceberg.hadoop.hive.metastore.uris", "thrift://inner:9083"),
    ],
)
def test_every_address_is_one_of_the_hosts_that_the_worker_allows(key: str, value: str) -> None:
    worker = {"icestream.allowed.hosts": "allowed"}
    (problem,) = host_problems({key: value}, worker, IcebergPlugin())
    assert problem.key == key and "'inner'" in problem.message
    assert host_problems({key: value.replace("inner", "allowed")}, worker, IcebergPlugin()) == []
