"""Listeners, TLS, users, CORS and headers on real sockets.

What is expected was seen on Kafka Connect 4.3.1 with the same config and the same requests.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from icestream.api.errors import NotLeader, PreconditionError
from icestream.cluster.service import ConnectorService
from icestream.cluster.settings.rest_settings import CrossOrigin, HeaderRule, RestConfig, parse_rest
from icestream.cluster.stores.connector_store import MemoryStore
from icestream.embedded.certificates import Certificates, certificates
from icestream.kafka.keystores import identity
from icestream.rest.headers import ResponseHeaders
from icestream.rest.security import client_context
from icestream.rest.server import HERE, RestServer, bind, listen, serve
from icestream.testing import FakeManagers
from tests.unit.cluster.test_service import CONFIG, WORKER

USERS = {"alice": "wonder land", "bob": "b:ob", "zoë": "süß"}
Serve = Callable[[RestConfig], RestServer]


@dataclass(frozen=True)
class Info:
    version: str = "1"


class OnlyServer:
    """As much of a service as these requests need."""

    def loggers(self) -> dict[str, object]:
        return {}

    def server(self) -> Info:
        return Info()


SERVICE = cast(ConnectorService, OnlyServer())


@pytest.fixture
def serving() -> Iterator[Serve]:
    started: list[RestServer] = []

    def start(config: RestConfig) -> RestServer:
        started.append(serve(SERVICE, bind(config)))
        return started[-1]

    yield start
    for server in started:
        server.stop()


def ask(method: str, url: str, verify: Any = True, **more: Any) -> httpx.Response:
    with httpx.Client(trust_env=False, verify=verify, timeout=60) as client:
        return client.request(method, url, **more)


def basic(text: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(text.encode()).decode()}


def test_every_listener_answers(serving: Serve) -> None:
    server = serving(parse_rest({"listeners": "http://127.0.0.1:0,http://localhost:0"}, {}))
    assert len(set(server.urls)) == 2
    assert [ask("GET", url).json() for url in server.urls] == [{"version": "1"}] * 2


def test_no_host_is_all_interfaces(serving: Serve) -> None:
    server = serving(parse_rest({"listeners": "http://:0"}, {}))
    assert ask("GET", f"http://127.0.0.1:{server.port}/").status_code == 200
    assert server.url == f"http://127.0.0.1:{server.port}"
    if socket.has_dualstack_ipv6():
        assert ask("GET", f"http://[::1]:{server.port}/").status_code == 200


def test_a_taken_port_closes_what_was_open() -> None:
    with listen("127.0.0.1", 0) as taken, listen("127.0.0.1", 0) as probe:
        free, port = probe.getsockname()[1], taken.getsockname()[1]
        probe.close()
        with pytest.raises(PreconditionError, match=f"port {port} of 127.0.0.1 is taken"):
            bind(parse_rest({"listeners": f"http://127.0.0.1:{free},http://127.0.0.1:{port}"}, {}))
        listen("127.0.0.1", free).close()


def test_admin_has_listeners_of_its_own_and_no_users(serving: Serve) -> None:
    both = {"listeners": "http://127.0.0.1:0", "admin.listeners": "http://127.0.0.1:0"}
    server = serving(replace(parse_rest(both, {}), credentials=USERS))
    assert ask("GET", server.url).status_code == 401
    assert ask("GET", f"{server.url}/admin/loggers", headers=basic("bob:b:ob")).status_code == 404
    assert ask("GET", server.admin_urls[0]).status_code == 404
    assert ask("GET", f"{server.admin_urls[0]}/admin/loggers").status_code == 200


def test_admin_is_where_the_rest_is_or_nowhere(serving: Serve) -> None:
    here = {"listeners": "http://127.0.0.1:0"}
    for raw, status in ((here, 200), ({**here, "admin.listeners": ""}, 404)):
        server = serving(parse_rest(raw, {}))
        assert ask("GET", f"{server.url}/admin/loggers").status_code == status
        assert server.admin_urls == []


@pytest.mark.parametrize(
    "headers",
    [
        basic("alice:wonder land"),
        basic("bob:b:ob"),
        basic("zoë:süß"),
        {"authorization": "basic Ym9iOmI6b2I="},
        {"authorization": "Basic Ym9iOmI6b2I"},
    ],
)
def test_a_user_with_the_password_comes_in(serving: Serve, headers: dict[str, str]) -> None:
    assert ask("GET", serving(replace(HERE, credentials=USERS)).url, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        basic("alice:bad"),
        basic("alice:"),
        basic("nobody:"),
        basic(":"),
        basic("alice"),
        {"authorization": "Basic"},
        {"authorization": "Basic !!!"},
        {"authorization": "Basic /w=="},
        {"authorization": "Bearer Ym9iOmI6b2I="},
    ],
)
def test_all_others_are_refused(serving: Serve, headers: dict[str, str]) -> None:
    answer = ask("GET", serving(replace(HERE, credentials=USERS)).url, headers=headers)
    assert (answer.status_code, answer.text) == (401, "User cannot access the resource.")
    assert answer.headers["content-type"] == "application/json"
    assert "www-authenticate" not in answer.headers


def test_what_does_not_exist_is_told_to_everybody(serving: Serve) -> None:
    server = serving(replace(HERE, credentials=USERS))
    assert ask("GET", f"{server.url}/nope").status_code == 404
    assert ask("DELETE", f"{server.url}/").status_code == 405


def test_options_are_refused_in_plain_text(serving: Serve) -> None:
    answer = ask("OPTIONS", f"{serving(replace(HERE, credentials=USERS)).url}/connectors")
    assert (answer.status_code, answer.headers["content-type"]) == (401, "text/plain")


def cors(answer: httpx.Response) -> dict[str, str]:
    return {
        name: value
        for name, value in answer.headers.items()
        if name == "vary" or name.startswith("access-control")
    }


NAMED = CrossOrigin(("http://ui.example.com", r"https://.*\.good\.org"))


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://ui.example.com", True),
        ("HTTP://UI.example.com", True),
        ("https://a.good.org", True),
        ("https://good.org", False),
        ("http://evil.org", False),
        ("http://ui.example.com.evil.org", False),
        ("http://ui.example.com http://evil.org", True),
    ],
)
def test_named_origins_may_read(serving: Serve, origin: str, allowed: bool) -> None:
    answer = ask("GET", serving(replace(HERE, cross_origin=NAMED)).url, headers={"origin": origin})
    assert answer.status_code == 200
    expected = {"access-control-allow-origin": origin} if allowed else {}
    assert cors(answer) == {"vary": "Origin", **expected}


def test_a_preflight_is_told_what_is_allowed_and_goes_on(serving: Serve) -> None:
    server = serving(replace(HERE, cross_origin=CrossOrigin(("*",), ("GET", "PUT"))))
    preflight = {"origin": "http://a", "access-control-request-method": "DELETE"}
    answer = ask("OPTIONS", f"{server.url}/connectors", headers=preflight)
    assert answer.status_code == 200
    assert "GET" in answer.headers["allow"]
    assert cors(answer) == {
        "vary": "Origin",
        "access-control-allow-origin": "http://a",
        "access-control-allow-methods": "GET,PUT",
        "access-control-allow-headers": "Content-Type",
        "access-control-max-age": "60",
    }
    plain = ask("OPTIONS", f"{server.url}/connectors", headers={"origin": "http://a"})
    assert cors(plain) == {"vary": "Origin", "access-control-allow-origin": "http://a"}
    assert cors(ask("GET", server.url)) == {"vary": "Origin"}
    assert (
        cors(ask("DELETE", f"{server.url}/nope", headers=preflight))["access-control-allow-origin"]
        == "http://a"
    )


def test_no_origins_no_headers(serving: Serve) -> None:
    assert cors(ask("GET", serving(HERE).url, headers={"origin": "http://a"})) == {}


def test_every_answer_has_the_headers_of_the_config(serving: Serve) -> None:
    text = (
        'set X-Frame-Options: DENY, "add Cache-Control: no-cache, no-store", add X-Twice: a, add X-Twice: b,'
        "add X-Set: a, set X-Set: b, set Content-Type: text/plain"
    )
    config = parse_rest({"listeners": "http://127.0.0.1:0", "response.http.headers.config": text}, {})
    server = serving(replace(config, credentials=USERS))
    for path in ("/", "/nope"):
        answer = ask("GET", server.url + path)
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-cache, no-store"
        assert answer.headers.get_list("x-twice") == ["a", "b"]
        assert answer.headers.get_list("x-set") == ["b"]
    assert ask("GET", server.url).headers.get_list("content-type") == ["application/json"]


def test_dates_are_counted_from_now() -> None:
    messages: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def keep(message: Any) -> None:
        messages.append(message)

    async def nothing() -> Any:
        return None

    rules = (HeaderRule("setDate", "Expires", "0"), HeaderRule("addDate", "X-Later", "31540000000"))
    asyncio.run(ResponseHeaders(app, rules, clock=lambda: 1794749650.9)({"type": "http"}, nothing, keep))
    assert messages[0]["headers"] == [
        (b"expires", b"Sun, 15 Nov 2026 13:34:10 GMT"),
        (b"x-later", b"Mon, 15 Nov 2027 14:40:50 GMT"),
    ]


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Of the server."""
    return certificates(tmp_path_factory.mktemp("server"), "hush-hush")


@pytest.fixture(scope="session")
def client_stores(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("client"), "tell-nobody")


def https(stores: Certificates, **more: str) -> dict[str, str]:
    return {
        "listeners": "https://127.0.0.1:0",
        "listeners.https.ssl.keystore.location": str(stores.keystore),
        "listeners.https.ssl.keystore.type": "PKCS12",
        "listeners.https.ssl.keystore.password": stores.password,
        **{f"listeners.https.ssl.{key.replace('_', '.')}": value for key, value in more.items()},
    }


def trusting(stores: Certificates) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(stores.truststore_pem))
    return context


def identity_file(stores: Certificates, folder: Path) -> Path:
    """Key and certificate as PEM."""
    keys = {"location": str(stores.keystore), "type": "PKCS12", "password": stores.password}
    found = identity({f"ssl.keystore.{key}": value for key, value in keys.items()})
    assert found is not None
    file = folder / "identity.pem"
    file.write_text(found.key_pem + found.certificates_pem)
    return file


def with_certificate(stores: Certificates, own: Certificates, folder: Path) -> ssl.SSLContext:
    context = trusting(stores)
    context.load_cert_chain(identity_file(own, folder))
    return context


def test_https_and_http_side_by_side(serving: Serve, stores: Certificates) -> None:
    server = serving(parse_rest({**https(stores), "listeners": "http://127.0.0.1:0,https://127.0.0.1:0"}, {}))
    assert [url.partition(":")[0] for url in server.urls] == ["http", "https"]
    assert [ask("GET", url, trusting(stores)).status_code for url in server.urls] == [200, 200]
    with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
        ask("GET", server.urls[1])


def test_certificates_may_be_pem(serving: Serve, stores: Certificates, tmp_path: Path) -> None:
    raw = {
        "listeners": "https://127.0.0.1:0",
        "ssl.keystore.location": str(identity_file(stores, tmp_path)),
        "ssl.keystore.type": "PEM",
    }
    assert ask("GET", serving(parse_rest(raw, {})).url, trusting(stores)).status_code == 200


def test_a_key_of_another_certificate_is_one_sentence(
    stores: Certificates, client_stores: Certificates, tmp_path: Path
) -> None:
    texts = []
    for number, one in enumerate((stores, client_stores)):
        (tmp_path / str(number)).mkdir()
        texts.append(identity_file(one, tmp_path / str(number)).read_text())
    mixed = tmp_path / "mixed.pem"
    mixed.write_text(texts[0].partition("-----BEGIN CERT")[0] + texts[1][texts[1].index("-----BEGIN CERT") :])
    raw = {
        "listeners": "https://127.0.0.1:0",
        "ssl.keystore.location": str(mixed),
        "ssl.keystore.type": "PEM",
    }
    bound = bind(parse_rest(raw, {}))
    with pytest.raises(PreconditionError, match=r"the certificate and key for https do not do \(KEY_VALUES"):
        serve(SERVICE, bound)
    bound.close()


def test_plain_http_on_the_https_port_ends_at_once(serving: Serve, stores: Certificates) -> None:
    server = serving(parse_rest(https(stores), {}))
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = connection.recv(1000)
    assert b"HTTP/1.1 200" not in answer
    silent = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    assert ask("GET", server.url, trusting(stores)).status_code == 200
    silent.close()


@pytest.mark.parametrize(("auth", "without"), [("none", True), ("requested", True), ("required", False)])
def test_certificates_of_clients(
    serving: Serve,
    stores: Certificates,
    client_stores: Certificates,
    tmp_path: Path,
    auth: str,
    without: bool,
) -> None:
    trust = {
        "truststore_location": str(client_stores.truststore_jks),
        "truststore_password": client_stores.password,
    }
    server = serving(parse_rest(https(stores, client_auth=auth, **trust), {}))
    known = with_certificate(stores, client_stores, tmp_path)
    assert ask("GET", server.url, known).status_code == 200
    if without:
        assert ask("GET", server.url, trusting(stores)).status_code == 200
    else:
        with pytest.raises(httpx.TransportError):
            ask("GET", server.url, trusting(stores))
        with pytest.raises(httpx.TransportError):
            ask("GET", server.url, with_certificate(stores, stores, tmp_path))


@contextmanager
def connected(
    server: RestServer, context: ssl.SSLContext, name: str = "127.0.0.1"
) -> Iterator[ssl.SSLSocket]:
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=60) as plain,
        context.wrap_socket(plain, server_hostname=name) as connection,
    ):
        yield connection


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_only_enabled_versions_are_spoken(serving: Serve, stores: Certificates, version: str) -> None:
    server = serving(parse_rest(https(stores, enabled_protocols=version), {}))
    spoken = []
    for one in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = trusting(stores)
        context.minimum_version = context.maximum_version = one
        try:
            with connected(server, context) as connection:
                spoken.append(connection.version())
        except ssl.SSLError:
            continue
    assert spoken == [version]


def test_a_suite_that_is_named_is_used(serving: Serve, stores: Certificates) -> None:
    server = serving(parse_rest(https(stores, cipher_suites="TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"), {}))
    with connected(server, trusting(stores)) as connection:
        cipher = connection.cipher()
    assert cipher is not None
    assert cipher[:2] == ("ECDHE-RSA-AES256-GCM-SHA384", "TLSv1.2")


def test_workers_reach_each_other(serving: Serve, stores: Certificates) -> None:
    """With certificates required on both sides, and one store for all workers."""
    trust = {"truststore_location": str(stores.truststore_pkcs12), "truststore_password": stores.password}
    config = parse_rest(https(stores, client_auth="required", truststore_type="PKCS12", **trust), {})
    server = serving(config)
    assert ask("GET", server.url, client_context(config)).status_code == 200


class Follower:
    """A service that leaves everything to another worker."""

    def __init__(self, leader: str) -> None:
        self._leader = leader

    def server(self) -> Info:
        raise NotLeader(self._leader)


def test_a_request_is_passed_on_with_certificate_and_user(serving: Serve, stores: Certificates) -> None:
    trust = {"truststore_location": str(stores.truststore_pkcs12), "truststore_password": stores.password}
    config = parse_rest(https(stores, client_auth="required", truststore_type="PKCS12", **trust), {})
    config = replace(config, credentials=USERS)
    leader = serving(config)
    follower = serve(cast(ConnectorService, Follower(leader.url)), bind(config))
    try:
        answer = ask("GET", follower.url, client_context(config), headers=basic("bob:b:ob"))
        assert (answer.status_code, answer.json()) == (200, {"version": "1"})
        assert ask("GET", follower.url, client_context(config)).status_code == 401
    finally:
        follower.stop()


def test_names_of_workers_are_compared_unless_told_not_to(serving: Serve, stores: Certificates) -> None:
    trust = {"truststore_location": str(stores.truststore_pkcs12), "truststore_password": stores.password}
    server = serving(parse_rest(https(stores), {}))
    for algorithm in ("https", ""):
        raw = https(stores, truststore_type="PKCS12", endpoint_identification_algorithm=algorithm, **trust)
        context = client_context(parse_rest(raw, {}))
        expected = pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch")
        with expected if algorithm else nullcontext(), connected(server, context, "other.example.com"):
            pass


def test_stop_frees_every_port(stores: Certificates) -> None:
    raw = {
        **https(stores),
        "listeners": "http://127.0.0.1:0,https://127.0.0.1:0",
        "admin.listeners": "http://127.0.0.1:0",
    }
    server = serve(SERVICE, bind(parse_rest(raw, {})))
    ports = [int(url.rpartition(":")[2]) for url in (*server.urls, *server.admin_urls)]
    assert len(set(ports)) == 3
    server.stop()
    for port in ports:
        listen("127.0.0.1", port).close()


def test_what_a_user_changes_has_the_users_name() -> None:
    service = ConnectorService("w:1", MemoryStore(), WORKER)
    service.connectors.use(FakeManagers())
    service.ready()
    rest = replace(parse_rest({"listeners": "http://127.0.0.1:0"}, {}), credentials=USERS)
    server = serve(service, bind(rest))
    try:
        config = {"name": "sink", "config": CONFIG}
        made = ask("POST", f"{server.url}/connectors", json=config, headers=basic("zoë:süß"))
        assert made.status_code == 201, made.text
        ask("PUT", f"{server.url}/connectors/sink/pause", headers=basic("bob:b:ob"))
        asked = [(event.kind, event.user) for event in service.history.events("sink") if event.user]
        assert asked == [("config", "zoë"), ("state", "bob")]
    finally:
        server.stop()
        service.close()
