"""Make and look at topics, as far as the load generator needs it."""

from __future__ import annotations

import time
from typing import Any, Final

from icestream.api.errors import NotFoundError, SourceUnavailable

_ANSWER_S: Final = 10.0
_WAIT_S: Final = 0.3
_POLL_S: Final = 0.02


def ensure_topic(bootstrap: str, topic: str, partitions: int = 3) -> bool:
    """Create the topic unless it exists, and wait until other connections see it; True if it is new."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.cimpl import NewTopic

    admin = _admin(bootstrap)
    if topic in _topics(admin, bootstrap):
        return False
    try:
        created = admin.create_topics([NewTopic(topic, partitions, 1)], request_timeout=_ANSWER_S)
        created[topic].result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise SourceUnavailable(
            f"topic '{topic}' cannot be created at {bootstrap}: {error.args[0].str()}"
        ) from error
    _wait_until_led(bootstrap, topic)
    return True


def _wait_until_led(bootstrap: str, topic: str) -> None:
    """A broker tells of a new topic a moment after the controller has made it."""
    admin = _admin(bootstrap)
    deadline = time.monotonic() + _ANSWER_S
    while time.monotonic() < deadline:
        found = _topics(admin, bootstrap).get(topic)
        partitions = found.partitions.values() if found is not None else ()
        if partitions and all(partition.leader >= 0 for partition in partitions):
            return
        time.sleep(_POLL_S)


def partition_count(bootstrap: str, topic: str) -> int:
    """How many partitions the topic has."""
    found = _topics(_admin(bootstrap), bootstrap).get(topic)
    if found is None:
        raise NotFoundError(f"there is no topic '{topic}' at {bootstrap}; create it first")
    return len(found.partitions)


def _admin(bootstrap: str) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def _topics(admin: Any, bootstrap: str) -> dict[str, Any]:
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + _ANSWER_S
    while True:
        # Short waits, because the client's own wait does not see Ctrl-C.
        try:
            topics: dict[str, Any] = admin.list_topics(timeout=_WAIT_S).topics
        except KafkaException as error:
            if time.monotonic() > deadline:
                raise SourceUnavailable(
                    f"no Kafka answers at {bootstrap}; start one with `icestream kafka start` or name another"
                    " with --bootstrap-servers"
                ) from error
        else:
            return topics
