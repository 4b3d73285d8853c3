"""Iceberg on Spark as others run it, beside the Kafka, Spark and S3 that all tests share."""

import multiprocessing
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

import pytest

from icestream.cli.sql import jar_settings
from icestream.pipeline.sql import Result, run_sql, split_statements
from tests.integration.foreign.catalog_servers import (
    running_hive_metastore,
    running_mariadb,
    running_postgresql,
    running_rest_catalog,
)

Config = Mapping[str, str]


def in_utc() -> None:
    os.environ["TZ"] = "UTC"
    time.tzset()
    # Java takes keys for Glue and DynamoDB from there only.
    os.environ |= {"AWS_ACCESS_KEY_ID": "some-key", "AWS_SECRET_ACCESS_KEY": "some-secret"}


FOR_SMALL_TABLES: Config = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}


class ForeignSpark:
    """Spark with Iceberg's own runtime, in a process of its own: this one's session is the worker's."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, context, in_utc)
        # Now, so that the process is the fixture's and not the first test's.
        self._pool.submit(int).result()
        self._settings: dict[str, str] = {}

    def __call__(self, configs: Config | Sequence[Config], text: str) -> list[Result]:
        several = [configs] if isinstance(configs, Mapping) else list(configs)
        several = [{**ICEBERG, **one} for one in several]
        if not self._settings:
            self._settings = dict(FOR_SMALL_TABLES)
            self._settings |= jar_settings(EVERY_KIND)
        settings = {
            **self._settings,
            "spark.sql.defaultCatalog": several[0].get("iceberg.catalog", "iceberg"),
        }
        return self._pool.submit(run_sql, several, split_statements(text), settings).result(timeout=600)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


ICEBERG: Config = {"connector.class": "IcebergSink"}
EVERY_KIND: Sequence[Config] = (
    {**ICEBERG, "iceberg.catalog.type": "jdbc", "iceberg.catalog.uri": "jdbc:sqlite:a.db"},
    {**ICEBERG, "iceberg.catalog.type": "jdbc", "iceberg.catalog.uri": "jdbc:postgresql://127.0.0.1/a"},
    {**ICEBERG, "iceberg.catalog.type": "jdbc", "iceberg.catalog.uri": "jdbc:mariadb://127.0.0.1/a"},
    {**ICEBERG, "iceberg.catalog.type": "rest", "iceberg.catalog.uri": "http://127.0.0.1"},
)


@pytest.fixture(scope="session")
def foreign_spark() -> Iterator[ForeignSpark]:
    spark = ForeignSpark()
    yield spark
    spark.close()


# -- servers of catalogs --


@pytest.fixture(scope="session")
def postgresql() -> Iterator[dict[str, str]]:
    with running_postgresql() as settings:
        yield settings


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with running_mariadb(tmp_path_factory.mktemp("mariadb")) as settings:
        yield settings


@pytest.fixture(scope="session")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with running_hive_metastore(tmp_path_factory.mktemp("hive")) as address:
        yield {"iceberg.catalog.type": "hive", "iceberg.catalog.uri": address}


@pytest.fixture(scope="session")
def rest_server(s3: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of Iceberg's own REST catalog."""
    with running_rest_catalog(tmp_path_factory.mktemp("rest"), s3) as address:
        yield address


@pytest.fixture
def rest(rest_server: str, s3: dict[str, str]) -> dict[str, str]:
    return {"iceberg.catalog.type": "rest", "iceberg.catalog.uri": rest_server, **s3}
