"""What a Kafka cluster says of itself: its version and its clock. Asked by `icestream doctor`.

By kafka-python: librdkafka tells neither.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import kafka.errors as kafka_python
from kafka.admin import KafkaAdminClient

from icestream.api.errors import SourceUnavailable
from icestream.kafka.connection import Connection
from icestream.kafka.group_connection import settings_of


class ClusterFacts:
    """Questions to one cluster."""

    def __init__(self, admin: Any, wall: Callable[[], float]) -> None:
        self._admin = admin
        self._wall = wall

    def version(self) -> tuple[int, ...]:
        """Of the broker that answers, by the requests that it knows: 4.3 for 4.3.1."""
        broker = self._admin.describe_cluster()["brokers"][0]["broker_id"]
        return tuple(self._admin.get_broker_version_data(broker).broker_version)

    def clock_skew(self) -> float | None:
        """Seconds that the clock of Kafka's controller is ahead of ours; None where Kafka does not tell.

        A controller says when it has last heard of each voter; of itself, that is now. Off by what the
        question takes.
        """
        before = self._wall()
        try:
            told = self._admin.describe_metadata_quorum()["topics"][0]["partitions"][0]
        except (kafka_python.KafkaError, LookupError):
            # An older Kafka, or one that does not let us ask.
            return None
        after = self._wall()
        leader = told.get("leader_id")
        for voter in told.get("current_voters", ()):
            heard = voter.get("last_fetch_timestamp") or -1
            if voter.get("replica_id") == leader and heard > 0:
                return float(heard / 1000 - (before + after) / 2)
        return None


@contextmanager
def cluster_facts(
    connection: Connection, seconds: float, wall: Callable[[], float] = time.time
) -> Iterator[ClusterFacts]:
    limit = int(seconds * 1000)
    try:
        admin = KafkaAdminClient(
            **settings_of(connection), request_timeout_ms=limit, bootstrap_timeout_ms=limit
        )
    except kafka_python.KafkaError as error:
        raise SourceUnavailable(f"asking Kafka for its version: {type(error).__name__}") from error
    try:
        yield ClusterFacts(admin, wall)
    except kafka_python.KafkaError as error:
        raise SourceUnavailable(f"asking Kafka for its version: {type(error).__name__}") from error
    finally:
        admin.close()
