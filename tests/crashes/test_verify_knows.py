"""What `verify` cannot know it says; it fails only on what it knows. Against a real broker, without Spark."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from icestream.api.offsets import Partition
from icestream.jobs.audits.audit import AuditFindings
from tests.crashes.conftest import MakePipeline
from tests.crashes.pipeline import Pipeline, record, values
from tests.crashes.without_spark import manager, run, verdicts

NAMED = {"errors.deadletterqueue.context.headers.enable": "true"}


def verdict(pipeline: Pipeline) -> AuditFindings:
    (found,) = verdicts(pipeline)
    return found


def assert_proven(pipeline: Pipeline) -> None:
    found = verdict(pipeline)
    assert (found.problems, found.unknown) == ([], [])


def assert_unsure(pipeline: Pipeline, about: str) -> None:
    found = verdict(pipeline)
    assert found.problems == []
    assert "Nothing is known to be missing or too many" in found.line
    assert found.unknown and all(about in told for told in found.unknown)


def expire(pipeline: Pipeline, ends: Mapping[Partition, int]) -> None:
    """Have Kafka remove all before these offsets, as retention does."""
    admin = AdminClient({"bootstrap.servers": pipeline.bootstrap})
    asked = [TopicPartition(topic, number, offset) for (topic, number), offset in ends.items()]
    for future in admin.delete_records(asked).values():
        future.result(30)


def test_transactional_topics_after_retention(pipeline: Pipeline) -> None:
    settings = {"bootstrap.servers": pipeline.bootstrap, "transactional.id": f"{pipeline.name}-source"}
    producer = Producer(settings)
    producer.init_transactions(30)
    for start in range(0, 300, 60):
        producer.begin_transaction()
        for number in range(start, start + 60):
            pipeline.send(producer, number, record(number))
            pipeline.sent[number] += 1
        producer.commit_transaction(30)
    producer.close()
    run(pipeline)
    pipeline.check()
    assert_proven(pipeline)
    expire(pipeline, dict.fromkeys(pipeline.partitions, 50))
    assert_unsure(pipeline, "50 of the offsets 0..104 have no record in the topic any more")


@pytest.mark.long
def test_compacted_topics(pipeline: Pipeline) -> None:
    name = f"{pipeline.name}-compacted"
    config = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "100",
    }
    pipeline.topics.create(name, 1, 1, config)
    pipeline.options = {"topics": name}

    def produce(numbers: range) -> None:
        producer = Producer({"bootstrap.servers": pipeline.bootstrap})
        for number in numbers:
            producer.produce(name, record(number), key=b"%d" % (number % 10))
        assert producer.flush(30) == 0
        producer.close()

    produce(range(200))
    run(pipeline)
    assert_proven(pipeline)
    sent, deadline = 200, time.monotonic() + 120
    while len(list(values(pipeline.bootstrap, name, 1))) == sent:
        assert time.monotonic() < deadline
        # A new segment, so that the old one may be compacted.
        produce(range(sent, sent + 20))
        sent += 20
        time.sleep(3)
    run(pipeline)
    assert_unsure(pipeline, "have no record in the topic any more")


def test_dead_letters_that_have_expired(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline(**NAMED)
    pipeline.produce(range(300), spoil=range(9))
    run(pipeline)
    assert_proven(pipeline)
    expire(pipeline, {Partition(pipeline.dead_letter_topic, 0): 4})
    assert_unsure(pipeline, "5 of 9 dead letters are there")
    assert "9 rejected" in verdict(pipeline).line


@pytest.mark.parametrize("headers", [{}, NAMED])
def test_a_queue_that_connectors_share(headers: dict[str, str], make_pipeline: MakePipeline) -> None:
    one, other = make_pipeline(**headers), make_pipeline(**headers)
    other.options = {**headers, "errors.deadletterqueue.topic.name": one.dead_letter_topic}
    for pipeline, count in ((one, 9), (other, 5)):
        pipeline.produce(range(300), spoil=range(count))
        run(pipeline)
    for pipeline in (one, other):
        if headers:
            assert_proven(pipeline)
        else:
            assert_unsure(pipeline, "14 letters of the queue do not say whose they are")


def test_a_job_between_its_commit_and_its_transaction(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline(**NAMED)
    pipeline.produce(range(300), spoil=range(9))

    class Gone(Exception):
        pass

    def look(point: str) -> None:
        if point == "committed db.t":
            assert_unsure(pipeline, "the last batch is not published yet: 0 of 9 dead letters")
            raise Gone

    first = manager(pipeline, look)
    with pytest.raises(Gone):
        first.tick()
    first.close()
    run(pipeline)
    assert_proven(pipeline)


def test_a_letter_that_is_missing_is_a_problem(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline(**NAMED)
    pipeline.produce(range(300), spoil=range(9))
    run(pipeline)
    pipeline.topics.delete(pipeline.dead_letter_topic)
    pipeline.topics.create(pipeline.dead_letter_topic, 1, 1)
    assert verdict(pipeline).problems[0] == "0 dead letters in the queue, but 9 records were rejected"
