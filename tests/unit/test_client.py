"""The REST client: what it sends, and how it fails. Commands over our own REST API are in tests/unit/cli."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from icestream.api.errors import (
    AlreadyExistsError,
    ConfigError,
    IcestreamError,
    NotFoundError,
    NotReadyError,
    PreconditionError,
    WorkerUnreachable,
)
from icestream.client import ConnectClient, Credentials

ODD = "a/b c%é?#&+"
ODD_PATH = "/connectors/a%2Fb%20c%25%C3%A9%3F%23%26%2B"
INFO = {"name": "sink", "config": {}, "tasks": [], "type": "sink"}


@pytest.mark.parametrize(
    ("call", "request_line", "answer"),
    [
        (lambda c: c.config(ODD), f"GET {ODD_PATH}/config", {}),
        (lambda c: c.info(ODD), f"GET {ODD_PATH}", INFO),
        (lambda c: c.put_config(ODD, {"a": "b"}), f"PUT {ODD_PATH}/config", INFO),
        (lambda c: c.patch_config(ODD, {"a": None}), f"PATCH {ODD_PATH}/config", INFO),
        (lambda c: c.pause(ODD), f"PUT {ODD_PATH}/pause", None),
        (lambda c: c.resume(ODD), f"PUT {ODD_PATH}/resume", None),
        (lambda c: c.stop(ODD), f"PUT {ODD_PATH}/stop", None),
        (lambda c: c.delete(ODD), f"DELETE {ODD_PATH}", None),
        (
            lambda c: c.restart(ODD, only_failed=True),
            f"POST {ODD_PATH}/restart?includeTasks=true&onlyFailed=true",
            None,
        ),
        (lambda c: c.restart_task(ODD, 2), f"POST {ODD_PATH}/tasks/2/restart", None),
        (lambda c: c.status_answer(ODD), f"GET {ODD_PATH}/status", {"name": ODD}),
        (lambda c: c.offsets(ODD), f"GET {ODD_PATH}/offsets", {"offsets": []}),
        (lambda c: c.alter_offsets(ODD, []), f"PATCH {ODD_PATH}/offsets", {"message": "m"}),
        (lambda c: c.reset_offsets(ODD), f"DELETE {ODD_PATH}/offsets", {"message": "m"}),
        (lambda c: c.topics(ODD), f"GET {ODD_PATH}/topics", {ODD: {"topics": ["t"]}}),
        (lambda c: c.reset_topics(ODD), f"PUT {ODD_PATH}/topics/reset", None),
        (lambda c: c.plugins(connectors_only=False), "GET /connector-plugins?connectorsOnly=false", []),
        (lambda c: c.plugin_config("a/b"), "GET /connector-plugins/a%2Fb/config", []),
        (lambda c: c.logger("a.b"), "GET /admin/loggers/a.b", {}),
        (lambda c: c.set_logger("a", "INFO"), "PUT /admin/loggers/a?scope=worker", ["a"]),
    ],
)
def test_names_are_quoted_in_every_request(
    canned: Any, call: Callable[[ConnectClient], Any], request_line: str, answer: Any
) -> None:
    verb, path = request_line.split(" ")
    canned.say(verb, path, 200, answer)
    call(ConnectClient(canned.url))
    assert canned.asked() == [request_line]


def test_a_body_is_json_and_an_answer_of_nobody_is_fine(canned: Any) -> None:
    canned.say("PUT", "/admin/loggers/root?scope=cluster", 204)
    assert ConnectClient(canned.url).set_logger("root", "WARN", whole_cluster=True) == []
    (request,) = canned.requests
    assert request.body == {"level": "WARN"}
    assert request.headers["content-type"] == "application/json"
    assert "authorization" not in request.headers


def test_the_path_of_a_gateway_is_kept(canned: Any) -> None:
    canned.say("GET", "/connect/connectors", 200, [])
    ConnectClient(f"{canned.url}/connect/").names()
    assert canned.asked() == ["GET /connect/connectors"]


@pytest.mark.parametrize("where", ["option", "address"])
def test_basic_authentication(canned: Any, where: str) -> None:
    canned.say("GET", "/connectors", 200, [])
    if where == "option":
        client = ConnectClient(canned.url, credentials=Credentials("jürg:p:w"))
    else:
        client = ConnectClient(canned.url.replace("//", "//j%C3%BCrg:p%3Aw@"))
    client.names()
    assert canned.requests[0].headers["authorization"] == "Basic asO8cmc6cDp3"
    assert client.url == canned.url
    assert "p:w" not in repr(Credentials("jürg:p:w"))


@pytest.mark.parametrize(
    ("status", "message", "kind", "told"),
    [
        (400, "bad", ConfigError, "bad"),
        (404, "Connector x not found", NotFoundError, "Connector x not found"),
        (404, "HTTP 404 Not Found", NotFoundError, "/connectors does not exist; is the worker older"),
        (409, "Connector sink already exists", AlreadyExistsError, "already exists"),
        (409, "Cannot complete request because of a rebalance", NotReadyError, "rebalance"),
        (401, "User cannot access the resource.", PreconditionError, "set --user"),
        (500, "boom", IcestreamError, "boom"),
    ],
)
def test_codes_become_errors(canned: Any, status: int, message: str, kind: type, told: str) -> None:
    canned.say("POST", "/connectors", status, {"error_code": status, "message": message})
    with pytest.raises(kind, match=told) as caught:
        ConnectClient(canned.url).create("sink", {})
    assert type(caught.value) is kind


def test_the_errors_of_a_config_come_one_by_one(canned: Any) -> None:
    message = (
        "Connector configuration is invalid and contains the following 2 error(s):\nfirst\nsecond\n"
        "You can also find the above list of errors at the endpoint `/connector-plugins/…`"
    )
    canned.say("PUT", "/connectors/sink/config", 400, {"error_code": 400, "message": message})
    with pytest.raises(ConfigError) as caught:
        ConnectClient(canned.url).put_config("sink", {})
    assert [problem.message for problem in caught.value.problems] == ["first", "second"]


@pytest.mark.parametrize("body", [b"<html>", {"not": "a list"}, b"", b"[" * 100_000])
def test_a_server_of_something_else_is_one_sentence(canned: Any, body: Any) -> None:
    canned.say("GET", "/connectors", 200, body)
    with pytest.raises(IcestreamError, match="does not answer as Kafka Connect does; set --url"):
        ConnectClient(canned.url).names()


def test_an_error_page_and_a_redirect_are_one_sentence(canned: Any) -> None:
    canned.say("GET", "/connectors", 502, b"<html>")
    with pytest.raises(IcestreamError, match="/connectors answered 502 Bad Gateway"):
        ConnectClient(canned.url).names()
    canned.say("GET", "/connectors", 301)
    canned.headers["Location"] = "https://other/connectors"
    with pytest.raises(PreconditionError, match="sends us to https://other/connectors"):
        ConnectClient(canned.url).names()


def test_progress_of_a_newer_worker_does_no_harm(canned: Any) -> None:
    status = {"name": "a", "connector": {"state": "RUNNING"}, "tasks": [], "type": "sink"}
    progress = {"rows": 3, "warnings": ["w"], "topics": ["t"], "new": 1}
    canned.say(
        "GET",
        "/connectors?expand=status&expand=progress",
        200,
        {"b": {"status": {**status, "name": "b"}}, "a": {"status": status, "progress": progress}, "c": {}},
    )
    first, second = ConnectClient(canned.url).overview()
    assert first.progress is not None
    assert (first.name, first.progress.rows, first.progress.topics) == ("a", 3, ("t",))
    assert (second.name, second.progress, second.type) == ("b", None, "sink")


def test_a_status_of_something_else_is_one_sentence(canned: Any) -> None:
    canned.say("GET", "/connectors?expand=status&expand=progress", 200, {"a": {"status": {"name": "a"}}})
    with pytest.raises(IcestreamError, match="a status is not as Kafka Connect's are; set --url"):
        ConnectClient(canned.url).overview()


@pytest.mark.parametrize(
    "url",
    ["ftp://host", "http://", "http://host:port", "http://a/?b", "", "http://a b:1", "http://a/b c"],
)
def test_what_is_no_address_is_one_sentence(url: str) -> None:
    with pytest.raises(PreconditionError, match="is not an address"):
        ConnectClient(url)


@pytest.mark.parametrize("url", ["http://me:secret@host:99999", "ftp://me:s/ecret@host", "me:secret@host:x"])
def test_an_address_that_is_none_is_shown_without_a_password(url: str) -> None:
    with pytest.raises(PreconditionError) as caught:
        ConnectClient(url)
    assert "ecret" not in str(caught.value)
    assert "host" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("worker:8083", "http://worker:8083"),
        ("https://worker/", "https://worker"),
        ("http://[::1]:8083", "http://[::1]:8083"),
        ("http://me:secret@worker:8083", "http://worker:8083"),
    ],
)
def test_the_address_is_shown_without_a_password(given: str, shown: str) -> None:
    assert ConnectClient(given).url == shown


def test_a_worker_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = ConnectClient(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.05)
        with pytest.raises(WorkerUnreachable, match="did not answer GET /connectors in time"):
            client.names()
        assert not client.is_healthy()


@pytest.mark.parametrize("host", ["x" * 70, "no-such-host.invalid"])
def test_a_host_that_cannot_be_is_unreachable(host: str) -> None:
    with pytest.raises(WorkerUnreachable, match="check the address"):
        ConnectClient(f"http://{host}:1").names()


def test_nobody_there_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(WorkerUnreachable, match=f"no worker answers at http://127.0.0.1:{port}; start one"):
        ConnectClient(f"http://127.0.0.1:{port}").names()


def test_a_server_that_hangs_up_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as rude:

        def hang_up() -> None:
            connection, _ = rude.accept()
            connection.recv(10_000)
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(WorkerUnreachable, match="cannot talk to"):
            ConnectClient(f"http://127.0.0.1:{rude.getsockname()[1]}").names()
        thread.join()


@pytest.fixture
def certificate(canned: Any, tmp_path: Path) -> Iterator[Path]:
    """The canned server speaks TLS, with a certificate that nobody knows."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "worker")])
    today = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    file, key_file = tmp_path / "cert.pem", tmp_path / "key.pem"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key_file)
    canned.server.socket = context.wrap_socket(
        canned.server.socket, server_side=True, do_handshake_on_connect=False
    )
    # A handshake that the client breaks off is what some of these tests want.
    canned.server.handle_error = lambda *_: None
    canned.say("GET", "/connectors", 200, ["sink"])
    yield file


def test_https_with_an_authority_of_our_own(canned: Any, certificate: Path) -> None:
    url = f"https://127.0.0.1:{canned.port}"
    assert ConnectClient(url, credentials=Credentials(cacert=str(certificate))).names() == ["sink"]
    assert ConnectClient(url, credentials=Credentials(is_insecure=True)).names() == ["sink"]


def test_https_of_a_stranger_is_one_sentence(canned: Any, certificate: Path) -> None:
    with pytest.raises(WorkerUnreachable, match=r"is not trusted \(.*\); name its authority with --cacert"):
        ConnectClient(f"https://127.0.0.1:{canned.port}").names()


def test_a_file_without_certificates_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    client = ConnectClient("https://127.0.0.1:1", credentials=Credentials(cacert=str(tmp_path / "empty.pem")))
    with pytest.raises(PreconditionError, match="has no certificates"):
        client.names()


def test_http_to_a_server_of_https_is_one_sentence(canned: Any, certificate: Path) -> None:
    with pytest.raises(WorkerUnreachable, match="cannot talk to"):
        ConnectClient(canned.url).names()


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"]
)
def test_an_answer_without_end_is_not_read_into_memory(head: bytes) -> None:
    sent = 0

    def answer() -> None:
        nonlocal sent
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(head)
            try:
                while True:
                    connection.sendall(b" " * 2**20)
                    sent += 2**20
            except OSError:
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(IcestreamError, match="more than 32 MiB"):
            ConnectClient(f"http://127.0.0.1:{listener.getsockname()[1]}").names()
        thread.join(120)
    assert sent < 2**27
