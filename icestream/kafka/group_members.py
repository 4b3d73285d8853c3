"""Who reads with a consumer group: the partitions of its members. For coordinators of others' workers."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from icestream.api.offsets import Partition
from icestream.kafka.clients import ANSWER_SECONDS, kafka_errors, quiet


class GroupMembers:
    """Questions about one group. Each call asks anew."""

    def __init__(self, settings: Mapping[str, str], group: str) -> None:
        self._group = group
        with kafka_errors("connecting to Kafka"):
            self._admin = AdminClient(quiet(settings))

    def count(self) -> int:
        return len(self.assignments())

    def assignments(self) -> list[frozenset[Partition]]:
        """The partitions of each member; empty for a group without members, or one that does not exist."""
        with kafka_errors(f"asking for the members of group {self._group}", self._admin.poll):
            asked = self._admin.describe_consumer_groups([self._group], request_timeout=ANSWER_SECONDS)
            try:
                described = asked[self._group].result(ANSWER_SECONDS)
            except KafkaException as error:
                if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                    return []
                raise
        return [
            frozenset(
                Partition(one.topic, one.partition)
                for one in (member.assignment.topic_partitions if member.assignment else ())
            )
            for member in described.members
        ]
