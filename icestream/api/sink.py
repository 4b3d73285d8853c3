"""What a sink connector offers, besides what every connector does."""

from __future__ import annotations

from typing import ClassVar, Literal

from icestream.api.connector import ConnectorPlugin


class SinkPlugin(ConnectorPlugin):
    """Named by an entry point of the group `icestream.connectors`."""

    kind: ClassVar[Literal["sink", "source"]] = "sink"
    probes_kafka: ClassVar[bool] = True
    """Whether `validate` asks Kafka and the Schema Registries of a config if they are there."""
    uses_spark: ClassVar[bool] = False
    """Whether its batches are Spark jobs; otherwise they run in the worker."""
