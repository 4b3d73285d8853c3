"""The Delta sink as a plugin: what the rest of the worker knows of it.

Read when the worker starts, so delta-rs is imported only by the methods that need it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import urlsplit

from icestream.api.config import Config, ConfigDef, subset
from icestream.api.connector import JavaClass, Probe, SparkCatalog
from icestream.api.errors import Problem
from icestream.api.maintenance import Maintainer
from icestream.api.place_addresses import place_address
from icestream.api.sink import Sink, SinkOptions, SinkPlugin
from icestream.connectors.delta import settings
from icestream.connectors.delta.maintenance.settings import MAINTENANCE, maintenance_of
from icestream.connectors.delta.settings import FOLDERS
from icestream.connectors.delta.storage import S3, Storage, file_path, is_local
from icestream.connectors.delta.table_settings import LOCATION, WRITE_PROPS, location_of

_PACKAGE: Final = "io.icestream.connect.delta."
_SPARK_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_SPARK_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
_SPARK_JAR: Final = "io.delta:delta-spark_4.1_2.13:4.4.0"


class DeltaPlugin(SinkPlugin):
    classes = (JavaClass(f"{_PACKAGE}DeltaSinkConnector", f"{_PACKAGE}DeltaSinkTask"),)
    settings = settings.DELTA_SINK
    uses_spark = True

    address_keys = (f"{S3}endpoint",)
    worker_settings = (FOLDERS,)
    most_names: ClassVar = {"delta.tables": 5_000}
    java_loggers: ClassVar = {"io.icestream.connect.delta": ("icestream.connectors.delta",)}

    def definition(self, config: Config) -> ConfigDef:
        return settings.definition(config)

    def problems(self, config: Config) -> list[Problem]:
        return settings.problems(config)

    def not_allowed(self, config: Config, worker: Config) -> list[Problem]:
        """Folders of the worker's machine only where its config says so."""
        allowed = [os.path.realpath(one) for one in FOLDERS.parse(worker.get(FOLDERS.name, ""))]
        return [
            Problem(
                key,
                f"'{key}={place}' is in none of the folders of {FOLDERS.name}; choose one of them, or add it "
                "to the worker's config",
            )
            for key, place in settings.locations(config)
            # What is no folder at all is said by `problems`, without a login that may be in it.
            if is_local(place)
            and settings.location_problem(place) is None
            and not _is_below(file_path(place), allowed)
        ]

    def packages(self, config: Config) -> Mapping[str, str]:
        return {"deltalake": "delta"}

    def place_addresses(self, config: Config) -> Iterator[tuple[str, str]]:
        has_endpoint = bool(config.get(f"{S3}endpoint", "").strip())
        for key, place in settings.locations(config):
            yield key, place_address(place, has_endpoint=has_endpoint)

    def warnings(self, config: Config) -> list[str]:
        return settings.warnings(config)

    def options(self, config: Config) -> SinkOptions:
        values = settings.DELTA_SINK.parse(config)
        milliseconds = values["delta.control.commit.timeout-ms"]
        return SinkOptions(
            commit_seconds=values["delta.control.commit.interval-ms"] / 1000,
            needs_keys=settings.is_upsert(config),
            # A merge of rows is run again if files are replaced meanwhile, and the other way round.
            maintenance=MAINTENANCE.rhythm(config, aside=not settings.is_upsert(config)),
            group=values["delta.connect.group-id"],
            transactional_prefix=values["delta.coordinator.transactional.prefix"] or "",
            commit_threads=values["delta.control.commit.threads"] or 2 * (os.cpu_count() or 1),
            commit_answer_seconds=milliseconds / 1000 if milliseconds else None,
            most_failed_commits=values["delta.control.commit.max-consecutive-failures"],
        )

    def maintainer(self, name: str, config: Config, target: str) -> Maintainer:
        from icestream.connectors.delta.maintenance.steps import Place, TableMaintainer

        place = Place(
            target,
            name,
            location_of(config, target),
            Storage.from_config(config),
            subset(config, WRITE_PROPS),
        )
        return TableMaintainer(place, maintenance_of(config, target))

    def destination(self, config: Config) -> str:
        """The bucket, or the folder, of all tables."""
        place = urlsplit(config.get(LOCATION, "").strip())
        host = urlsplit(config.get(f"{S3}endpoint", "").strip()).netloc.rpartition("@")[2]
        if not place.netloc:
            return f"file://{place.path}" if place.path else ""
        return f"{place.scheme}://{place.netloc}{f' at {host}' if host else ''}"

    def open(self, name: str, config: Config) -> Sink:
        from icestream.connectors.delta.sink import DeltaSink

        return DeltaSink(name, config)

    def probes(self, config: Config, worker: Config) -> Iterator[Probe]:
        from icestream.connectors.delta.probes import table_probes

        return table_probes(config)

    def spark_catalog(self, config: Config) -> SparkCatalog | None:
        """Tables are named by their folder, as delta.`/lake/sales/orders`. None on S3: there Spark needs more
        than Delta's jars, and its writes are not safe beside ours."""
        if not all(is_local(place) for _, place in settings.locations(config)):
            return None
        return SparkCatalog("spark_catalog", _SPARK_CATALOG, {}, _SPARK_EXTENSION, (_SPARK_JAR,))


def _is_below(place: str, folders: Sequence[str]) -> bool:
    real = Path(os.path.realpath(place))
    return any(real.is_relative_to(one) for one in folders)
