"""Catalogs of connectors as Spark's settings, the jars that they need, and where statements end."""

import pytest

from icestream.api.errors import ConfigError, IcestreamError
from icestream.connectors.iceberg.catalogs.java_catalogs import java_catalog
from icestream.pipeline.sql import jars_for, split_statements, sql_settings

CLASS = {"connector.class": "org.apache.iceberg.connect.IcebergSinkConnector"}
SQLITE = CLASS | {
    "iceberg.catalog": "demo",
    "iceberg.catalog.type": "sql",
    "iceberg.catalog.uri": "jdbc:sqlite:/data/catalog.db",
    "iceberg.catalog.warehouse": "file:///data/warehouse",
}
POSTGRESQL = CLASS | {
    "iceberg.catalog": "pg",
    "iceberg.catalog.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
    "iceberg.catalog.uri": "jdbc:postgresql://db:5432/iceberg",
    "iceberg.catalog.jdbc.user": "iceberg",
    "iceberg.catalog.jdbc.password": "s3cret",
    "iceberg.catalog.warehouse": "s3://warehouse/",
    "iceberg.catalog.s3.region": "eu-central-1",
}
REST = CLASS | {"iceberg.catalog.type": "rest", "iceberg.catalog.uri": "http://catalog:8181"}


def names(configs: list[dict[str, str]]) -> list[str]:
    return [coordinate.split(":")[1] for coordinate in jars_for(configs)]


def test_a_single_catalog_is_the_default_one() -> None:
    settings = sql_settings([SQLITE])
    assert settings["spark.sql.defaultCatalog"] == "demo"
    assert settings["spark.sql.catalog.demo"] == "org.apache.iceberg.spark.SparkCatalog"
    assert settings["spark.sql.catalog.demo.type"] == "jdbc"
    assert settings["spark.sql.catalog.demo.jdbc.schema-version"] == "V1"
    assert settings["spark.sql.catalog.demo.uri"] == "jdbc:sqlite:/data/catalog.db"


def test_several_catalogs_keep_their_names_and_none_is_the_default() -> None:
    settings = sql_settings([SQLITE, POSTGRESQL, REST, SQLITE])
    assert "spark.sql.defaultCatalog" not in settings
    assert settings["spark.sql.catalog.iceberg.type"] == "rest"
    assert settings["spark.sql.catalog.pg.jdbc.password"] == "s3cret"
    assert settings["spark.sql.catalog.pg.client.region"] == "eu-central-1"
    assert settings["spark.sql.catalog.pg.io-impl"].endswith("S3FileIO")


def test_one_name_for_two_catalogs_is_refused() -> None:
    other = {**SQLITE, "iceberg.catalog.uri": "jdbc:sqlite:/other.db"}
    with pytest.raises(IcestreamError, match="different catalogs by 'demo'; name one of them with --config"):
        sql_settings([SQLITE, other])


def test_a_name_that_spark_cannot_have_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Catalog 'a\.b' has a dot in its name"):
        sql_settings([{**SQLITE, "iceberg.catalog": "a.b"}])


def test_only_the_jars_that_are_needed_are_fetched() -> None:
    runtime = "iceberg-spark-runtime-4.1_2.13"
    assert names([SQLITE]) == [runtime, "sqlite-jdbc"]
    assert names([POSTGRESQL]) == [runtime, "postgresql", "iceberg-aws-bundle"]
    assert names([REST, REST]) == [runtime, "iceberg-aws-bundle"]


def test_addresses_of_sqlalchemy_are_translated_too() -> None:
    sqlite = java_catalog({**SQLITE, "iceberg.catalog.uri": "sqlite:////data/catalog.db"})
    assert sqlite.properties["uri"] == "jdbc:sqlite:/data/catalog.db"
    uri = "postgresql+psycopg2://iceberg:s%2Fcret@db:5432/iceberg"
    postgresql = java_catalog({"iceberg.catalog.type": "sql", "iceberg.catalog.uri": uri})
    assert postgresql.properties["uri"] == "jdbc:postgresql://db:5432/iceberg"
    assert postgresql.properties["jdbc.password"] == "s/cret"
    assert "cret" not in repr(postgresql)


def test_buckets_behind_an_endpoint_are_looked_for_where_the_sink_writes() -> None:
    key, endpoint = "s3.path-style-access", {"iceberg.catalog.s3.endpoint": "http://localhost:9000"}
    assert java_catalog({**REST, **endpoint}).properties[key] == "true"
    by_host = {**REST, **endpoint, f"iceberg.catalog.{key}": "false"}
    assert java_catalog(by_host).properties[key] == "false"


def test_statements_end_at_a_semicolon_outside_of_quotes_and_comments() -> None:
    text = 'SELECT \';\' AS a, "x;\\";y" -- no; end\n; ;SELECT `b;` /* c;\n */ - 1 / 2;\n-- only a comment\n'
    assert split_statements(text) == [
        'SELECT \';\' AS a, "x;\\";y" -- no; end',
        "SELECT `b;` /* c;\n */ - 1 / 2",
    ]
    assert split_statements(" ; ") == []
