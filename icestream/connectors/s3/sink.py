"""The open S3 sink of one job. Made by `plugin`."""

from __future__ import annotations

from collections.abc import Sequence

from icestream.api.config import Config
from icestream.api.sink import OpenWriter, Sink
from icestream.connectors.s3.stores.opening import process_store, store_settings
from icestream.connectors.s3.target import S3Target
from icestream.connectors.s3.writer import ObjectWriter


class S3Sink(Sink):
    def __init__(self, name: str, config: Config) -> None:
        self.writer: OpenWriter = ObjectWriter
        self.whole_partitions = True
        self._target = S3Target(name, config, process_store(store_settings(config)))

    def targets(self) -> Sequence[S3Target]:
        return [self._target]
