"""Who is asked to sign requests to S3, with which login, and what of the answer is taken."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.awsrequest import AWSRequest
from pyiceberg.io.pyarrow import PyArrowFileIO

from icestream.api.errors import ConfigError
from icestream.connectors.iceberg.catalogs.java_catalogs import java_catalog
from icestream.connectors.iceberg.catalogs.keys import storage_properties
from icestream.connectors.iceberg.catalogs.remote_signing import (
    RemoteSigner,
    SignatureRefused,
    SignedFileIO,
    asks_for_signing,
    carried_properties,
    file_io,
    is_signed,
    signed_properties,
)
from icestream.connectors.iceberg.plugin import IcebergPlugin
from icestream.connectors.iceberg.settings import problems, warnings
from tests.http_proxy import Answer, PassOn, Request, proxy

CATALOG = "https://lake.example/api/catalog"
LOGIN = {"Authorization": "Bearer t0ken"}
REST = {"iceberg.tables": "ns.t", "iceberg.catalog.type": "rest", "iceberg.catalog.uri": CATALOG}


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        ({}, False),
        ({"s3.remote-signing-enabled": "TRUE"}, True),
        ({"s3.remote-signing-enabled": "false", "s3.signer": "S3V4RestSigner"}, False),
        ({"s3.signer": "S3V4RestSigner"}, True),
        ({"s3.signer": "attack.Run"}, False),
    ],
)
def test_tables_ask_for_it_in_javas_words_or_in_pyicebergs(said: Mapping[str, str], asks: bool) -> None:
    assert asks_for_signing(said) is asks


@pytest.mark.parametrize(
    ("said", "chosen", "url"),
    [
        ({}, None, f"{CATALOG}/v1/aws/s3/sign"),
        ({"s3.signer.endpoint": "/v1/w/sign?t=1"}, None, f"{CATALOG}/v1/w/sign?t=1"),
        ({"s3.signer.uri": "https://LAKE.example:443/"}, None, "https://LAKE.example:443/v1/aws/s3/sign"),
        ({"signer.uri": "https://lake.example", "signer.endpoint": "s"}, None, "https://lake.example/s"),
        ({"signer.endpoint": "https://lake.example/s"}, None, "https://lake.example/s"),
        ({}, "https://signs.example", "https://signs.example/v1/aws/s3/sign"),
        (
            {"s3.signer.uri": "https://signs.example/x"},
            "https://signs.example",
            "https://signs.example/x/v1/aws/s3/sign",
        ),
    ],
)
def test_the_catalogs_host_signs_or_the_one_that_the_connector_names(
    said: Mapping[str, str], chosen: str | None, url: str
) -> None:
    found = signed_properties({**said, "py-io-impl": "attack.Run"}, CATALOG, chosen, LOGIN)
    assert found == {"icestream.signer.url": url, "icestream.signer.headers": json.dumps(LOGIN)}


@pytest.mark.parametrize(
    "said",
    [
        {"s3.signer.uri": "https://elsewhere.example"},
        {"s3.signer.uri": "http://lake.example"},
        {"s3.signer.uri": "https://lake.example:8443"},
        {"s3.signer.uri": "https://lake.example:port"},
        {"s3.signer.uri": "https://lake.example@elsewhere.example"},
        {"s3.signer.uri": "https://lake.example.elsewhere.example"},
        {"signer.uri": "//elsewhere.example"},
        {"s3.signer.endpoint": "https://elsewhere.example/sign"},
        {"s3.signer.uri": "https://", "s3.signer.endpoint": "elsewhere.example"},
    ],
)
def test_no_table_sends_the_login_elsewhere(said: Mapping[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"s3\.signer\.uri: .* is not sent there; set the key") as told:
        signed_properties(said, CATALOG, "https://signs.example", LOGIN)
    assert "t0ken" not in str(told.value)


def test_no_table_speaks_in_our_words() -> None:
    hostile = {"icestream.signer.url": "https://elsewhere", "icestream.signer.headers": "{}"}
    assert storage_properties(hostile) == {}
    assert not is_signed(carried_properties(PyArrowFileIO(dict(hostile))))


def test_what_a_plan_carries_opens_the_same_files_elsewhere() -> None:
    said = {"s3.endpoint": "http://127.0.0.1:9", "client.region": "eu-central-1"}
    opened = file_io(signed_properties(said, CATALOG, None, LOGIN))
    carried = pickle.loads(pickle.dumps(carried_properties(opened)))
    again = file_io(carried, "s3://bucket/t")
    assert isinstance(again, SignedFileIO) and again.properties == opened.properties
    assert again.fs_by_scheme("s3", "bucket") == opened.fs_by_scheme("s3a", "bucket")
    assert type(file_io(said, "s3://bucket/t")) is PyArrowFileIO


def test_a_region_that_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match=r"client\.region: the region is missing"):
        file_io(signed_properties({}, CATALOG, None, LOGIN)).new_input("s3://bucket/x")


def test_what_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore", None)
    with pytest.raises(
        ConfigError, match=r"'botocore' is missing; install it: pip install 'icestream\[aws\]'"
    ):
        signed_properties({}, CATALOG, None, LOGIN)


def test_the_keys_of_a_connector() -> None:
    config = {
        **REST,
        "iceberg.catalog.s3.remote-signing-enabled": "true",
        "iceberg.catalog.s3.signer.uri": "https://signs.example",
        "iceberg.catalog.s3.signer.endpoint": "v1/sign",
    }
    assert (problems(config), warnings(config)) == ([], [])
    java = java_catalog(config).properties
    assert java["s3.remote-signing-enabled"] == "true"
    # Iceberg's newer names: those of before are not read any more.
    assert (java["signer.uri"], java["signer.endpoint"]) == ("https://signs.example", "v1/sign")
    assert "iceberg.catalog.s3.signer.uri" in IcebergPlugin.address_keys


# -- questions and answers --


@contextmanager
def service(answer: Answer, heard: list[Request]) -> Iterator[RemoteSigner]:
    def sign(request: Request, pass_on: PassOn) -> Answer:
        heard.append(request)
        return answer

    with proxy("http://127.0.0.1:9", sign) as address:
        yield RemoteSigner(signed_properties({}, address, None, LOGIN))


def request(**headers: str) -> Any:
    made = AWSRequest("PUT", "http://s3.example/bucket/a%20b?partNumber=1", headers, b"content")
    made.context["client_region"] = "eu-central-1"
    return made


def signed(uri: str = "http://s3.example/bucket/a%20b?partNumber=1", **headers: Any) -> Answer:
    return Answer(200, {}, json.dumps({"uri": uri, "headers": headers}).encode())


def test_a_request_is_told_without_its_body_and_gets_the_signature_only() -> None:
    heard: list[Request] = []
    answer = signed(
        **{"Authorization": ["AWS4 x"], "x-amz-date": ["now"], "Content-Length": ["0"], "Evil": ["1"]}
    )
    asked = request(**{"Content-Type": "a/b", "User-Agent": "me", "x-amz-meta-x": "y"})
    with service(answer, heard) as sign:
        sign(asked)
        sign(asked)
    assert dict(asked.headers.items()) == {
        "Content-Type": "a/b",
        "User-Agent": "me",
        "x-amz-meta-x": "y",
        "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
        "Authorization": "AWS4 x",
        "x-amz-date": "now",
    }
    assert heard[0].headers["authorization"] == "Bearer t0ken"
    assert json.loads(heard[0].body) == {
        "method": "PUT",
        "region": "eu-central-1",
        "uri": "http://s3.example/bucket/a%20b?partNumber=1",
        "headers": {
            "Content-Type": ["a/b"],
            "x-amz-meta-x": ["y"],
            "x-amz-content-sha256": ["UNSIGNED-PAYLOAD"],
            "Host": ["s3.example"],
        },
        "properties": {},
        "provider": "s3",
    }


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (signed(uri="http://elsewhere.example/bucket/a"), "signs for another host"),
        (Answer(200, {}, b"<html>"), "no signature"),
        (Answer(200, {}, b'{"uri": "http://s3.example/"}'), "no signature"),
        (Answer(401, {}, b"secret words"), "answers HTTP 401"),
        (Answer(307, {"Location": "http://127.0.0.1:9/elsewhere"}, b""), "answers HTTP 307"),
    ],
)
def test_an_answer_that_is_none_is_refused(answer: Answer, why: str) -> None:
    heard: list[Request] = []
    with service(answer, heard) as sign, pytest.raises(SignatureRefused, match=why) as told:
        sign(request())
    assert len(heard) == 1
    assert "secret" not in str(told.value) and "t0ken" not in str(told.value)


def test_a_service_that_is_away_is_asked_again() -> None:
    heard: list[Request] = []
    with (
        service(Answer(503, {}, b""), heard) as sign,
        pytest.raises(OSError, match="answers HTTP 503") as told,
    ):
        sign(request())
    assert len(heard) == 4 and not isinstance(told.value, SignatureRefused)
