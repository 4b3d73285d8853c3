"""What the client of a Schema Registry asks, believes and shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from icestream.api.errors import ConfigError, FatalError, SourceUnavailable
from icestream.converters.registry.access import access
from icestream.converters.registry.client import Reference, RegistryClient, UnknownSchema, UnusableSchema
from icestream.converters.registry.subjects import strategy


def client(url: str, **settings: str) -> RegistryClient:
    return RegistryClient(access({"schema.registry.url": url, **settings}))


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({}, "schema.registry.url"),
        ({"schema.registry.url": "ftp://x"}, "schema.registry.url"),
        ({"schema.registry.url": "http://x", "http.read.timeout.ms": "soon"}, "http.read.timeout.ms"),
        (
            {"schema.registry.url": "http://x", "basic.auth.credentials.source": "USER_INFO"},
            "basic.auth.user.info",
        ),
        (
            {"schema.registry.url": "http://x", "basic.auth.credentials.source": "SASL_INHERIT"},
            "basic.auth.credentials.source",
        ),
        (
            {"schema.registry.url": "http://x", "bearer.auth.credentials.source": "OAUTHBEARER"},
            "bearer.auth.credentials.source",
        ),
    ],
)
def test_wrong_settings_name_their_key(settings: Mapping[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        access(settings)
    assert [problem.key for problem in caught.value.problems] == [key]


def test_secrets_are_not_shown() -> None:
    given = {"schema.registry.url": "http://ada:s3cret@host:1", "schema.registry.ssl.key.password": "s3cret"}
    assert "s3cret" not in repr(access(given))
    with pytest.raises(ConfigError) as caught:
        access({"schema.registry.url": "nothing://ada:s3cret@host"})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"schema.registry.url": "http://ada:s3/cret@host:1"},
        {"schema.registry.url": "http://ada:1/s3cret@host:1"},
        {"schema.registry.url": "http://ada:s3#cret@host:1"},
        {"schema.registry.url": "http://ada:s3,cret@host:1"},
        {"schema.registry.url": "http://ada:s3[cret@host:1"},
        {"schema.registry.url": "http://ada:s3cret@host:port"},
        {"schema.registry.url": "http://ada:s3cret@host:1/\x01"},
        {
            "schema.registry.url": "http://host:1",
            "bearer.auth.credentials.source": "STATIC_TOKEN",
            "bearer.auth.token": "s3\ncret",
        },
        {
            "schema.registry.url": "http://host:1",
            "bearer.auth.credentials.source": "STATIC_TOKEN",
            "bearer.auth.token": "s3crèt",
        },
    ],
)
def test_secrets_that_make_a_setting_wrong_are_not_shown(settings: Mapping[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        access(settings)
    assert "s3" not in str(caught.value)
    assert "cr" not in str(caught.value).replace("credentials", "")


def test_a_token_from_a_file_ends_before_its_line_does(canned: Any) -> None:
    canned.answers[("GET", "/schemas/ids/3")] = (200, {"schema": "text"})
    settings = {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "abc\n"}
    assert client(canned.url, **settings).by_id(3).text == "text"


def test_references_come_before_those_who_need_them_and_ids_are_asked_once(canned: Any) -> None:
    canned.answers[("GET", "/schemas/ids/3")] = (
        200,
        {
            "schema": "top",
            "references": [
                {"name": "b", "subject": "sb", "version": 2},
                {"name": "a", "subject": "sa", "version": 1},
            ],
        },
    )
    canned.answers[("GET", "/subjects/sb/versions/2")] = (
        200,
        {
            "schema": "B",
            "references": [{"name": "a", "subject": "sa", "version": 1}],
        },
    )
    canned.answers[("GET", "/subjects/sa/versions/1")] = 200, {"schema": "A"}
    asking = client(canned.url)
    found = asking.by_id(3)
    assert asking.by_id(3) is found
    assert found.references == (Reference("a", "A"), Reference("b", "B"))
    assert found.kind == "AVRO"
    assert len(canned.requests) == 3


def test_an_unknown_id_is_told_apart_from_trouble(canned: Any) -> None:
    canned.answers[("GET", "/schemas/ids/4")] = 404, {"error_code": 40403, "message": "Schema not found"}
    canned.answers[("GET", "/schemas/ids/5")] = 503, {}
    canned.answers[("GET", "/schemas/ids/6")] = 403, {}
    canned.answers[("GET", "/schemas/ids/7")] = 200, b"<html>hello</html>"
    canned.answers[("GET", "/schemas/ids/8")] = 404, {"error_code": [], "message": "inner words"}
    asking = client(canned.url)
    for _ in range(2):  # the second time without asking
        with pytest.raises(UnknownSchema, match="Schema not found; error code: 40403"):
            asking.by_id(4)
    assert len(canned.requests) == 1
    with pytest.raises(SourceUnavailable, match="answers HTTP 503"):
        asking.by_id(5)
    with pytest.raises(FatalError, match="refuses the credentials"):
        asking.by_id(6)
    with pytest.raises(SourceUnavailable, match="is no Schema Registry"):
        asking.by_id(7)
    with pytest.raises(UnknownSchema, match=r"refuses the request \(HTTP 404\)$"):
        asking.by_id(8)


def test_an_answer_that_no_registry_gives_is_trouble(canned: Any) -> None:
    canned.answers[("GET", "/schemas/ids/3")] = (200, {"status": "up"})
    canned.answers[("GET", "/schemas/ids/4")] = (200, {"schema": "s", "references": [{"name": "n"}]})
    canned.answers[("GET", "/schemas/ids/5")] = (200, {"schema": "s", "references": ["name"]})
    canned.answers[("GET", "/schemas/ids/6")] = (200, {"schema": {}})
    for schema_id, missing in ((3, "schema"), (4, "subject"), (5, "name"), (6, "schema")):
        with pytest.raises(SourceUnavailable, match=f"without '{missing}'"):
            client(canned.url).by_id(schema_id)


def test_strategies_of_subjects() -> None:
    package = "io.confluent.kafka.serializers.subject."

    def named(name: str) -> Any:
        return strategy({"key.subject.name.strategy": package + name}, True)

    assert strategy({}, True)("t", None) == "t-key"
    assert named("RecordNameStrategy")("t", "a.B") == "a.B"
    assert named("TopicRecordNameStrategy")("t", "a.B") == "t-a.B"
    with pytest.raises(UnusableSchema):
        named("RecordNameStrategy")("t", None)
    with pytest.raises(ConfigError, match=r"key\.subject\.name\.strategy"):
        named("MyStrategy")
