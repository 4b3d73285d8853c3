"""Which errors may be tried again, and which open the circuit breaker of a destination."""

from __future__ import annotations

import pickle

import pytest

from icestream.api.errors import (
    CommitConflict,
    CommitUnknown,
    ConfigError,
    EngineUnavailable,
    FatalError,
    OriginUnavailable,
    RetriableError,
    SinkRefused,
    SinkUnavailable,
    SourceUnavailable,
    is_destination_outage,
    retriable_kind,
)


class NoAnswer(SinkUnavailable):
    """Of a connector's own."""


@pytest.mark.parametrize(
    ("error", "kind", "is_outage"),
    [
        (SinkUnavailable("x"), SinkUnavailable, True),
        (NoAnswer("x"), SinkUnavailable, True),
        (CommitUnknown("x"), CommitUnknown, True),
        (OriginUnavailable("x"), OriginUnavailable, True),
        (SourceUnavailable("x"), SourceUnavailable, False),
        (SinkRefused("x"), SinkRefused, False),
        (EngineUnavailable("x"), EngineUnavailable, False),
        (CommitConflict("x"), CommitConflict, False),
        (FatalError("x"), None, False),
        (ConfigError([]), None, False),
        (ValueError("x"), None, False),
    ],
)
def test_an_error_is_of_a_kind_that_every_process_knows(
    error: Exception, kind: type[RetriableError] | None, is_outage: bool
) -> None:
    assert retriable_kind(error) is kind
    assert is_destination_outage(error) is is_outage
    if kind is not None:
        assert pickle.loads(pickle.dumps(kind)) is kind
