"""The S3 sink as a plugin: what the rest of the worker knows of it.

Read when the worker starts, so boto3 and what writes objects are imported only by the methods that need them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from icestream.api.config import Config, ConfigDef
from icestream.api.connector import JavaClass, Probe, Retries
from icestream.api.errors import ConfigError, Problem
from icestream.api.sink import Sink, SinkOptions, SinkPlugin
from icestream.api.topics_file import TopicsFileRules
from icestream.connectors.s3 import checks, clouds, settings
from icestream.connectors.s3.keys import FOLDERS, PROVIDER, ROLE_PROVIDER, S3_SINK, definition

_PACKAGE: Final = "io.confluent.connect.s3."
_VERSION: Final = "12.1.9"


class S3SinkPlugin(SinkPlugin):
    classes = (JavaClass(f"{_PACKAGE}S3SinkConnector", f"{_PACKAGE}S3SinkTask", _VERSION),)
    settings = S3_SINK
    uses_spark = True
    address_keys = ("s3.proxy.url", clouds.ENDPOINT)
    worker_settings = (FOLDERS, clouds.LOGIN_FILES)
    java_loggers: ClassVar = {"io.confluent.connect.s3": ("icestream.connectors.s3", "botocore")}

    def definition(self, config: Config) -> ConfigDef:
        return definition(config)

    def problems(self, config: Config) -> list[Problem]:
        return [*checks.problems(config), *self._layout_problems(config)]

    def _layout_problems(self, config: Config) -> Sequence[Problem]:
        from icestream.connectors.s3.layout import layout_of
        from icestream.connectors.s3.schedule import filling_of

        try:
            values = settings.parsed(config)
        except ConfigError:
            return ()  # which is said of every setting by itself
        try:
            layout_of(values)
            filling_of(values)
        except ConfigError as error:
            return error.problems
        return ()

    def warnings(self, config: Config) -> list[str]:
        return checks.warnings(config)

    def not_allowed(self, config: Config, worker: Config) -> list[Problem]:
        """Files of the worker only where its config says so."""
        if not settings.is_folder(config):
            return clouds.login_file_problems(config, worker)
        allowed = FOLDERS.parse(worker.get(FOLDERS.name, ""))
        folder = Path(os.path.realpath(settings.folder_of(config)))
        if any(folder.is_relative_to(os.path.realpath(one)) for one in allowed):
            return []
        return [
            Problem(
                "store.url",
                f"'store.url={config['store.url']}' with bucket '{config.get('s3.bucket.name', '')}' is in "
                f"none of the folders of {FOLDERS.name}; choose one of them, or add it to the worker's "
                "config",
            )
        ]

    def packages(self, config: Config) -> Mapping[str, str]:
        if clouds.is_cloud(config):
            return {"obstore": "clouds"}
        return {} if settings.is_folder(config) else {"boto3": "s3"}

    def place_addresses(self, config: Config) -> Iterator[tuple[str, str]]:
        """Without an address the bucket is Amazon's, and so is whoever gives a role; Google's and Azure's
        do not name the host."""
        regions = (one.default for one in S3_SINK.settings if one.name == "s3.region")
        region = config.get("s3.region", "").strip() or next(regions)
        if clouds.is_cloud(config):
            if not any(clouds.problems(config)) and not clouds.place_of(config).is_elsewhere:
                yield "store.url", clouds.place_of(config).service
        elif address := config.get("store.url", "").strip():
            if not settings.is_folder(config):
                yield "store.url", address
        else:
            yield "s3.bucket.name", settings.aws_address("s3", region)
        if config.get(f"{PROVIDER}class", "").strip() == ROLE_PROVIDER:
            key = f"{PROVIDER}sts.region"
            yield key, settings.aws_address("sts", config.get(key, "").strip() or region)

    def options(self, config: Config) -> SinkOptions:
        from icestream.connectors.s3.schedule import filling_of, pace_of

        values = settings.parsed(config)
        return SinkOptions(
            commit_seconds=pace_of(values),
            needs_keys=values["store.kafka.keys"],
            needs_headers=values["store.kafka.headers"],
            filling=filling_of(values),
        )

    def open(self, name: str, config: Config) -> Sink:
        from icestream.connectors.s3.sink import S3Sink

        return S3Sink(name, config)

    def destination(self, config: Config) -> str:
        return settings.place(config)

    def retries(self, config: Config) -> Retries:
        if not config.get("retry.backoff.ms", "").strip():
            return Retries()
        return Retries(first_seconds=settings.parsed(config)["retry.backoff.ms"] / 1000)

    def topics_file(self, environ: Mapping[str, str]) -> TopicsFileRules:
        from icestream.connectors.s3.topics_file import rules

        return rules(environ)

    def probes(self, config: Config, worker: Config) -> Iterator[Probe]:
        from icestream.connectors.s3.probes import store_probes

        return store_probes(config)
