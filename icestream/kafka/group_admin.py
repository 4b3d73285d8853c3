"""Sets and deletes the offsets of a consumer group whose members are gone, as an administrator does."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from icestream.api.errors import NotReadyError
from icestream.api.offsets import Offsets
from icestream.kafka.clients import ANSWER_SECONDS, kafka_errors, quiet

_HAS_MEMBERS = {
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.NON_EMPTY_GROUP,
    KafkaError.GROUP_SUBSCRIBED_TO_TOPIC,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
}


def set_group_offsets(settings: Mapping[str, str], group: str, offsets: Offsets) -> None:
    """Commit for a group without members. NotReadyError: it has some."""
    positions = [TopicPartition(p.topic, p.number, offsets[p]) for p in offsets]
    # Not by the admin client, for the reason in `topics.py`.
    member = Consumer(quiet({**settings, "group.id": group, "enable.auto.commit": False}))
    try:
        with kafka_errors(f"setting the offsets of group {group}"):
            try:
                member.commit(offsets=positions, asynchronous=False)
            except KafkaException as error:
                _refuse_members(group, error)
                raise
    finally:
        member.close()


def delete_group(settings: Mapping[str, str], group: str) -> None:
    """Delete a group with all its offsets; one that does not exist is fine."""
    with kafka_errors(f"deleting group {group}"):
        admin = AdminClient(quiet(settings))
        try:
            admin.delete_consumer_groups([group], request_timeout=ANSWER_SECONDS)[group].result(
                ANSWER_SECONDS
            )
        except KafkaException as error:
            _refuse_members(group, error)
            if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                raise


def _refuse_members(group: str, error: KafkaException) -> None:
    if error.args[0].code() in _HAS_MEMBERS:
        raise NotReadyError(
            f"group '{group}' still has members: its tasks have not stopped yet, or another program reads "
            "with it; stop them and ask again"
        ) from error
