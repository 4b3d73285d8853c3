"""`validate` asks the Schema Registry that a converter names, and blames the key that is wrong."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from icestream.api.errors import ConfigError
from icestream.embedded import ports
from icestream.jobs.probes import registry_probes

AVRO = "io.confluent.connect.avro.AvroConverter"
ANSWERS = {
    "/good": (200, b'{"compatibilityLevel":"NONE"}'),
    "/wary": (401, b"{}"),
    "/other": (200, b"<html>"),
}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, body = ANSWERS[self.path.removesuffix("/config")]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Not into the tests' output."""


@pytest.fixture
def address() -> Iterator[str]:
    server = HTTPServer((ports.HOST, 0), _Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://{ports.HOST}:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def _problems(url: str) -> list[tuple[str, str]]:
    config = {"value.converter": AVRO, "value.converter.schema.registry.url": url}
    (probe,) = registry_probes(config)
    return [(one.key, one.message) for one in probe.ask(probe)]


def test_a_registry_that_answers_is_fine(address: str) -> None:
    assert _problems(f"{address}/good") == []


def test_one_that_wants_other_credentials_is_told_apart(address: str) -> None:
    ((key, message),) = _problems(f"{address.replace('//', '//user:secret@')}/wary")
    assert key == "value.converter.basic.auth.user.info"
    assert "refuses the credentials" in message
    assert "secret" not in message


@pytest.mark.parametrize("where", ["nobody", "other"])
def test_an_address_without_a_registry_is_blamed(address: str, where: str) -> None:
    url = f"http://{ports.HOST}:{ports.free_port()}" if where == "nobody" else f"{address}/other"
    ((key, message),) = _problems(url)
    assert key == "value.converter.schema.registry.url"
    assert url in message


def test_connectors_without_a_registry_ask_none() -> None:
    assert list(registry_probes({"value.converter": "org.apache.kafka.connect.json.JsonConverter"})) == []


def test_a_missing_address_is_named_by_its_whole_key() -> None:
    with pytest.raises(ConfigError) as raised:
        list(registry_probes({"value.converter": AVRO}))
    assert [one.key for one in raised.value.problems] == ["value.converter.schema.registry.url"]
