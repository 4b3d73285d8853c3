"""What the log says of bad records: as much as Kafka Connect's, and never a value."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from icestream.api.batch import Rejected
from icestream.api.offsets import Partition
from icestream.api.sink import SinkOptions
from icestream.jobs.publishing.publisher import log_rejected
from icestream.jobs.sinks.job import SinkJob, sink_job

_RECORD = Rejected(
    Partition("orders", 1),
    7,
    "VALUE_CONVERTER",
    "it is bad",
    key=b"k",
    value=b"secret",
    timestamp_ms=1_700_000_000_000,
    class_name="org.apache.kafka.connect.json.JsonConverter",
)
_SUMMARY = "rejected 1 records, the first: offset 7 of orders-1 (VALUE_CONVERTER)"


def _job(**errors: str) -> SinkJob:
    config = {f"errors.log.{key.replace('_', '.')}": value for key, value in errors.items()}
    return sink_job(
        "sink", {"connector.class": "FileStreamSink", "topics": "orders", **config}, SinkOptions()
    )


def _logged(caplog: pytest.LogCaptureFixture, job: SinkJob, record: Rejected = _RECORD) -> list[str]:
    with caplog.at_level(logging.INFO):
        log_rejected(job, [record])
    return caplog.messages


def test_without_being_asked_for_only_where_the_first_is(caplog: pytest.LogCaptureFixture) -> None:
    assert _logged(caplog, _job(include_messages="true")) == [_SUMMARY]


def test_each_record_on_request(caplog: pytest.LogCaptureFixture) -> None:
    assert _logged(caplog, _job(enable="true")) == [
        _SUMMARY,
        "Error encountered in task sink-0. Executing stage 'VALUE_CONVERTER' with class "
        "'org.apache.kafka.connect.json.JsonConverter'. "
        "org.apache.kafka.connect.errors.DataException: it is bad",
    ]


def test_where_it_is_from_on_request(caplog: pytest.LogCaptureFixture) -> None:
    logged = _logged(caplog, _job(enable="true", include_messages="true"), replace(_RECORD, task=3))
    assert logged[1] == (
        "Error encountered in task sink-3. Executing stage 'VALUE_CONVERTER' with class "
        "'org.apache.kafka.connect.json.JsonConverter', where consumed record is {topic='orders', "
        "partition=1, offset=7, timestamp=1700000000000}. "
        "org.apache.kafka.connect.errors.DataException: it is bad"
    )
    assert "secret" not in caplog.text
