"""How source connectors say what new topics are like, and what they ask of a worker."""

from __future__ import annotations

import pytest

from icestream.api.errors import ConfigError
from icestream.api.source_settings import NewTopic, new_topic, source_problems

DEFAULT = {"topic.creation.default.replication.factor": "1", "topic.creation.default.partitions": "3"}
GROUPS = {
    **DEFAULT,
    "topic.creation.groups": "logs, compacted",
    "topic.creation.logs.include": "log-.*,trace-.*",
    "topic.creation.logs.exclude": ".*-private",
    "topic.creation.logs.partitions": "-1",
    "topic.creation.compacted.include": ".*",
    "topic.creation.compacted.cleanup.policy": "compact",
}


def test_without_a_word_the_broker_decides() -> None:
    assert new_topic("t", {}) == NewTopic(-1, -1, None)


def test_the_first_group_that_matches_decides() -> None:
    assert new_topic("log-a", GROUPS) == NewTopic(-1, 1, {})
    assert new_topic("log-private", GROUPS) == NewTopic(3, 1, {"cleanup.policy": "compact"})
    assert new_topic("t", DEFAULT | {"topic.creation.default.retention.ms": "5"}) == NewTopic(
        3, 1, {"retention.ms": "5"}
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"topic.creation.groups": "g"}, "topic.creation.default.replication.factor"),
        (DEFAULT | {"topic.creation.default.partitions": "0"}, "Number of partitions must be positive"),
        (
            DEFAULT | {"topic.creation.groups": "g", "topic.creation.g.include": "("},
            "Syntax error in regular expression",
        ),
    ],
)
def test_bad_groups_are_told(config: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        new_topic("t", config)


def test_required_exactly_once_needs_a_worker_and_a_connector_that_can() -> None:
    required = {"exactly.once.support": "REQUIRED"}
    distributed = {"group.id": "g"}
    enabled = {**distributed, "exactly.once.source.support": "enabled"}
    assert [problem.message for problem in source_problems(required, distributed, "cannot")] == [
        "This worker does not have exactly-once source support enabled.",
        "cannot",
    ]
    assert source_problems(required, enabled, None) == []
    assert source_problems(required, {}, None) == [], "a standalone worker does not look at it, as in Java"
    boundary = source_problems({"transaction.boundary": "connector"}, distributed, None)
    assert [problem.key for problem in boundary] == ["transaction.boundary"]
