"""The Iceberg sink as a plugin: what the rest of the worker knows of it.

Read when the worker starts, so PyIceberg is imported only by the methods that need it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Final

from icestream.api.config import Config, ConfigDef, subset
from icestream.api.connector import JavaClass, Probe, SparkCatalog
from icestream.api.environment_job import EnvironmentJob
from icestream.api.errors import Problem
from icestream.api.history import Observer
from icestream.api.maintenance import Maintainer
from icestream.api.manager import Manager
from icestream.api.place_addresses import place_address
from icestream.api.queries import SparkQueries
from icestream.api.sink import Sink, SinkOptions, SinkPlugin
from icestream.connectors.iceberg import settings
from icestream.connectors.iceberg.catalogs import hadoop_settings
from icestream.connectors.iceberg.catalogs.keys import likely_kind
from icestream.connectors.iceberg.catalogs.place import catalog_place
from icestream.connectors.iceberg.maintenance.settings import maintenance_of, rhythm_of

_APACHE: Final = "org.apache.iceberg.connect."
_TABULAR: Final = "io.tabular.iceberg.connect."
_CATALOG: Final = "iceberg.catalog."
_PLACES: Final = ("warehouse", "location", "path", "dir")
"""Last words of the keys that name folders or buckets."""


class IcebergPlugin(SinkPlugin):
    classes = tuple(
        JavaClass(f"{package}IcebergSinkConnector", f"{package}IcebergSinkTask")
        for package in (_APACHE, _TABULAR)
    )
    settings = settings.ICEBERG_SINK
    uses_spark = True

    address_keys = (
        f"{_CATALOG}uri",
        f"{_CATALOG}oauth2-server-uri",
        f"{_CATALOG}s3.endpoint",
        f"{_CATALOG}s3.signer.uri",
        f"{_CATALOG}signer.uri",
        f"{_CATALOG}s3.proxy-uri",
        f"{_CATALOG}gcs.service.host",
        f"{_CATALOG}adls.account-host",
        f"{_CATALOG}adls.blob-storage-authority",
        f"{_CATALOG}adls.dfs-storage-authority",
        f"{_CATALOG}hdfs.host",
        f"{_CATALOG}glue.endpoint",
        f"{_CATALOG}dynamodb.endpoint",
        *hadoop_settings.ADDRESSES,
    )
    worker_settings = (hadoop_settings.FOLDERS,)
    most_names: ClassVar = {"iceberg.tables": 5_000}
    client_prefixes: ClassVar = {"iceberg.kafka.": "producer"}
    java_loggers: ClassVar = {
        "org.apache.iceberg": ("icestream.connectors.iceberg", "pyiceberg"),
        "org.apache.iceberg.connect": ("icestream.jobs", "icestream.connectors.iceberg"),
        "io.tabular.iceberg.connect": ("icestream.jobs", "icestream.connectors.iceberg"),
    }

    def definition(self, config: Config) -> ConfigDef:
        return settings.definition(config)

    def problems(self, config: Config) -> list[Problem]:
        return settings.problems(config)

    def not_allowed(self, config: Config, worker: Config) -> list[Problem]:
        problem = hadoop_settings.folder_problem(config, worker)
        return [problem] if problem else []

    def place_addresses(self, config: Config) -> Iterator[tuple[str, str]]:
        has_endpoint = any(config.get(key, "").strip() for key in self.address_keys if "endpoint" in key)
        for key, value in config.items():
            # To a REST catalog a warehouse is a name; it says where the files are.
            is_name = key == f"{_CATALOG}warehouse" and likely_kind(subset(config, _CATALOG)) == "rest"
            if key.rpartition(".")[2] in _PLACES and not is_name:
                yield key, place_address(value, has_endpoint=has_endpoint)

    def tasks(self, config: Config, most: int) -> list[Config]:
        return [{**config, "task.id": str(task)} for task in range(most)]

    def warnings(self, config: Config) -> list[str]:
        return settings.warnings(config)

    def options(self, config: Config) -> SinkOptions:
        values = settings.ICEBERG_SINK.parse(config)
        milliseconds = values["iceberg.control.commit.timeout-ms"]
        # Merges are Spark jobs, which have all cores each.
        threads = 1 if settings.is_upsert(config) else 2 * (os.cpu_count() or 1)
        return SinkOptions(
            commit_seconds=values["iceberg.control.commit.interval-ms"] / 1000,
            needs_keys=settings.is_upsert(config),
            group=settings.own_group(config),
            transactional_prefix=values["iceberg.coordinator.transactional.prefix"] or "",
            commit_threads=values["iceberg.control.commit.threads"] or threads,
            commit_answer_seconds=milliseconds / 1000 if milliseconds else None,
            most_failed_commits=values["iceberg.control.commit.max-consecutive-failures"],
            # A merge of rows is run again if files are replaced meanwhile, and the other way round.
            maintenance=rhythm_of(
                config,
                aside=not (
                    values["iceberg.tables.upsert-mode-enabled"] or values["iceberg.tables.cdc-field"]
                ),
            ),
        )

    def maintainer(self, name: str, config: Config, target: str) -> Maintainer:
        from icestream.connectors.iceberg.catalogs.sharing import SharedCatalog
        from icestream.connectors.iceberg.maintenance.steps import TableMaintainer

        chosen, write_props = maintenance_of(config, target), settings.write_props(config)
        shared = SharedCatalog(config)
        return TableMaintainer(
            lambda: shared.catalog.load_table(target),
            target,
            name,
            chosen,
            write_props=write_props,
            close=shared.close,
            branch=config.get(f"iceberg.table.{target}.commit-branch")
            or config.get("iceberg.tables.default-commit-branch")
            or "main",
        )

    def open(self, name: str, config: Config) -> Sink:
        return self.open_on_spark(name, config, None)

    def open_on_spark(self, name: str, config: Config, queries: SparkQueries | None) -> Sink:
        from icestream.connectors.iceberg.sink import IcebergSink

        return IcebergSink(name, config, queries)

    def destination(self, config: Config) -> str:
        return catalog_place(config)

    def probes(self, config: Config, worker: Config) -> Iterator[Probe]:
        from icestream.connectors.iceberg.probes import catalog_probes

        return catalog_probes(config)

    def spark_catalog(self, config: Config) -> SparkCatalog | None:
        from icestream.connectors.iceberg.catalogs.java_catalogs import java_catalog

        return java_catalog(config)

    def job_from_environment(self, environ: Mapping[str, str]) -> EnvironmentJob:
        from icestream.connectors.iceberg.coordinator.job_config import IcebergJobConfig

        config = IcebergJobConfig.from_environment(environ)

        def make(wake: Callable[[], None], observer: Observer) -> Manager:
            from icestream.connectors.iceberg.coordinator.job_manager import IcebergJobManager

            return IcebergJobManager(config, wake, observer=observer)

        about = f"the Java workers of group '{config.group_id}', by topic '{config.control_topic}'"
        return EnvironmentJob(config.job_id, make, about, config.warnings, config.secrets)
