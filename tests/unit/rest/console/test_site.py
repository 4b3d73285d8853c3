"""The console's page and files, and who may ask its API at all."""

from __future__ import annotations

import base64
import gzip
import re
import socket
from pathlib import Path

import httpx
import pytest

from icestream.cluster.settings.console_settings import Level
from icestream.cluster.settings.rest_settings import CrossOrigin, RestConfig
from icestream.rest.console.access import api_refusal, is_known_host
from icestream.rest.console.assets import Assets, imports_of, modules_of
from icestream.rest.console.exchange import API
from icestream.rest.console.routes import TABLE
from icestream.rest.console.site import Site
from icestream.rest.server import RestServer

from .conftest import OURS, World

GET_ROUTES = sorted(path for verb, path in TABLE if verb == "GET" and path != "events")
EVERY_ROUTE = sorted(TABLE)


@pytest.fixture(scope="module")
def users_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    users = tmp_path_factory.mktemp("users") / "users.properties"
    users.write_text("alice=wonder land\n")
    return users


@pytest.fixture
def with_users(world: World, users_file: Path) -> RestServer:
    return world.serve(
        rest_extension_classes="org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension",
        icestream_rest_auth_credentials_file=str(users_file),
    )


def get(server: RestServer, path: str, **headers: str) -> httpx.Response:
    with httpx.Client(trust_env=False, timeout=60) as client:
        return client.get(server.url + path, headers={key.replace("_", "-"): v for key, v in headers.items()})


def login(text: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(text.encode()).decode()}


# The page and its files


def test_the_console_without_its_slash_is_redirected_below_whatever_prefix(world: World) -> None:
    answer = get(world.serve(), "/console")
    assert (answer.status_code, answer.headers["location"]) == (307, "console/")


def test_the_page_is_asked_for_again_each_time_and_has_all_headers(world: World) -> None:
    page = get(world.serve(), "/console/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cross-origin-opener-policy"] == "same-origin"
    assert page.headers["cross-origin-resource-policy"] == "same-origin"
    assert "{{" not in page.text
    again = get(world.serve(), "/console/", if_none_match=page.headers["etag"])
    assert again.status_code == 304


def test_files_are_kept_for_ever_packed_and_only_those_of_this_version() -> None:
    assets = Assets(
        {
            "index.html": b"{{assets}}|{{preload}}",
            "app.js": b'import {x} from "./pages/a.js";\nimport "./vendor/b.js";\nimport("./late.js");\n',
            "pages/a.js": b"import {\n  y,\n  z\n} from '../store.js';\nexport * from \"../c.js\";\n",
            "vendor/b.js": b"",
            "store.js": b"// import './no.js'\n",
            "c.js": b"",
            "late.js": b"",
            "vendor/LICENSE": b"text",
        }
    )
    folder = f"a/{assets.version}"
    first, _, preloaded = assets.index.decode().partition("|")
    assert first == folder
    assert re.findall(r'href="([^"]+)"', preloaded) == [
        f"{folder}/{name}" for name in ("app.js", "pages/a.js", "vendor/b.js", "store.js", "c.js")
    ]
    assert "vendor/LICENSE" not in assets.paths
    found = assets.find(assets.version, "pages/a.js")
    assert found is not None and gzip.decompress(found.packed) == found.plain
    assert assets.find("0" * 16, "pages/a.js") is None
    assert assets.find(assets.version, "../site.py") is None


def test_every_import_of_the_console_leads_to_a_file_of_it() -> None:
    assets = Assets()
    files = {path: assets.find(assets.version, path) for path in assets.paths}
    texts = {path: asset.plain.decode() for path, asset in files.items() if asset and path.endswith(".js")}
    missing = [
        (path, one) for path, text in texts.items() for one in imports_of(path, text) if one not in texts
    ]
    assert missing == []
    if texts:
        assert modules_of({path: text.encode() for path, text in texts.items()})[0] == "app.js"


def test_files_are_served_by_name_only(world: World) -> None:
    server, assets = world.serve(), Assets()
    for path in assets.paths[:3]:
        answer = get(server, f"/console/a/{assets.version}/{path}")
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-encoding"] == "gzip"
        plain = get(server, f"/console/a/{assets.version}/{path}", accept_encoding="identity")
        assert plain.content == answer.content and "content-encoding" not in plain.headers
    for path in ("index.html", "..%2fsite.py", "%2e%2e/site.py", "nothing.js", "pages/nothing.js"):
        assert get(server, f"/console/a/{assets.version}/{path}").status_code in (400, 404)


# Who may ask


@pytest.mark.parametrize(("verb", "path"), EVERY_ROUTE)
def test_every_route_has_a_level_and_refuses_below_it(world: World, verb: str, path: str) -> None:
    needed = TABLE[verb, path].level
    assert needed in (Level.VIEW, Level.OPERATE, Level.EDIT)
    assert verb == "GET" or path == "validate" or needed > Level.VIEW
    for level in (Level.VIEW, Level.OPERATE):
        if level < needed:
            server = world.serve(icestream_console=level.name.lower())
            answer = world.ask(verb, f"{path}?connector=x", server=server)
            assert answer.status_code == 403
            assert f"needs the level '{needed.name.lower()}'" in answer.json()["message"]


def test_the_table_is_all_that_there_is(world: World) -> None:
    routes = Site(world.service, RestConfig()).routes()
    paths = {str(route.path).removeprefix(API) for route in routes if str(route.path).startswith(API)}  # type: ignore[attr-defined]
    assert paths == {path for _, path in TABLE}


@pytest.mark.parametrize(("verb", "path"), EVERY_ROUTE)
def test_every_route_needs_the_header_of_the_console(world: World, verb: str, path: str) -> None:
    with httpx.Client(trust_env=False) as client:
        for headers in ({}, {"x-icestream-console": "0"}, {"x-icestream-console": "1, 1"}):
            answer = client.request(verb, f"{world.serve().url}{API}{path}", headers=headers)
            assert answer.status_code == 403
            assert "X-Icestream-Console: 1" in answer.json()["message"]
            assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(("verb", "path"), EVERY_ROUTE)
def test_every_route_needs_a_login_where_rest_does(
    world: World, with_users: RestServer, verb: str, path: str
) -> None:
    for headers in ({}, login("alice:wrong"), login("bob:wonder land"), {"authorization": "Bearer x"}):
        answer = world.ask(verb, path, server=with_users, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic ")


def test_with_a_login_the_api_knows_who_asks(world: World, with_users: RestServer) -> None:
    me = world.ask("GET", "me", server=with_users, headers=login("alice:wonder land")).json()
    assert (me["user"], me["level"]) == ("alice", "edit")


def test_who_asked_for_a_change_is_in_the_timeline(world: World, with_users: RestServer) -> None:
    world.create("orders")
    named, user = {"connector": "orders"}, login("alice:wonder land")
    assert world.ask("PUT", "pause", server=with_users, params=named, headers=user).status_code == 202
    told = world.ask("GET", "timeline", server=with_users, params=named, headers=user).json()["events"]
    assert "alice" in [event["user"] for event in told if "pause" in event["text"].lower()]


def test_only_the_page_asks_for_the_password_and_never_for_that_of_rest(with_users: RestServer) -> None:
    page = get(with_users, "/console/")
    assert (page.status_code, page.headers["www-authenticate"][:5]) == (401, "Basic")
    assert "www-authenticate" not in get(with_users, "/console").headers
    assert get(with_users, "/console").status_code == 307
    rest = get(with_users, "/connectors")
    assert rest.status_code == 401 and "www-authenticate" not in rest.headers
    assets = Assets()
    for path in assets.paths[:1]:
        assert get(with_users, f"/console/a/{assets.version}/{path}").status_code == 200


@pytest.mark.parametrize(
    ("headers", "is_ours"),
    [
        ({}, True),
        ({"origin": "http://127.0.0.1:{port}"}, True),
        ({"origin": "https://127.0.0.1:{port}"}, True),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "http://127.0.0.1:1"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://127.0.0.1:{port}.evil.example"}, False),
        ({"origin": "http://x@127.0.0.1:{port}"}, False),
        ({"origin": "http://127.0.0.1:{port}/"}, False),
        ({"origin": "file://"}, False),
        ({"origin": ""}, False),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "none"}, False),
    ],
)
def test_pages_of_other_origins_are_refused(world: World, headers: dict[str, str], is_ours: bool) -> None:
    sent = {name: value.replace("{port}", str(world.serve().port)) for name, value in headers.items()}
    answer = world.ask("GET", "me", headers=sent)
    assert answer.status_code == (200 if is_ours else 403), answer.text


@pytest.mark.parametrize(
    ("host", "is_known"),
    [
        ("127.0.0.1:8083", True),
        ("[::1]:8083", True),
        ("10.1.2.3", True),
        ("localhost", True),
        ("LOCALHOST:8083", True),
        ("worker-1:8083", True),
        ("proxy.example.com", True),
        ("proxy.example.com:8443", True),
        ("other.example.com:8443", True),
        ("other.example.com", False),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("127.0.0.1@evil.example", False),
        ("", False),
        ("a b", False),
    ],
)
def test_without_a_login_names_that_are_not_ours_are_refused(host: str, is_known: bool) -> None:
    config = RestConfig(advertised_host="worker-1")
    hosts = ("proxy.example.com", "other.example.com:8443")
    config = RestConfig(console=type(config.console)(hosts=hosts))
    assert is_known_host(host, config, ("worker-1", "")) is is_known
    refused = api_refusal({**OURS, "host": host}, config, ("worker-1",))
    assert (refused is None) is is_known
    if refused is not None:
        assert "icestream.console.hosts" in refused
    assert api_refusal({**OURS, "host": host}, RestConfig(credentials={"a": "b"})) is None


def test_a_name_that_somebody_points_at_us_gets_neither_page_nor_answers(world: World) -> None:
    for path in ("/console/", "/console/api/me"):
        answer = get(world.serve(), path, host="evil.example", x_icestream_console="1")
        assert answer.status_code == 403 and "icestream.console.hosts" in answer.json()["message"]
    assert get(world.serve(), "/connectors", host="evil.example").status_code == 200


def test_the_console_has_no_cors_whatever_the_config_says(world: World) -> None:
    server = world.serve(
        access_control_allow_origin=".*", access_control_allow_methods="GET,POST,PUT,DELETE,PATCH"
    )
    other = {"origin": "http://evil.example"}
    preflight = {
        "access-control-request-method": "GET",
        "access-control-request-headers": "x-icestream-console",
    }
    with httpx.Client(trust_env=False, base_url=server.url) as client:
        answers = [
            client.get("/console/", headers=other),
            client.get("/console/api/me", headers={**OURS, **other}),
            client.options("/console/api/me", headers={**other, **preflight}),
            client.options("/console/", headers={**other, **preflight}),
            client.get(f"/console/a/{Assets().version}/nothing.js", headers=other),
        ]
        assert [one.status_code for one in answers] == [200, 403, 405, 405, 404]
        for answer in answers:
            assert not [name for name in answer.headers if name.startswith("access-control")]
        rest = client.get("/connectors", headers=other)
        assert rest.headers["access-control-allow-origin"] == "http://evil.example"
    assert CrossOrigin().origins == ()


def test_levels_off_and_listeners_of_its_own(world: World) -> None:
    assert get(world.serve(icestream_console="off"), "/console/").status_code == 404
    assert get(world.serve(icestream_console="off"), "/console/api/me", **OURS).status_code == 404
    apart = world.serve(icestream_console_listeners="http://127.0.0.1:0")
    assert get(apart, "/console/").status_code == 404
    assert get(apart, "/connectors").status_code == 200
    with httpx.Client(trust_env=False) as client:
        (page,) = apart.console_urls
        assert client.get(page).status_code == 200
        assert client.get(page + "api/me", headers=OURS).json()["mode"] == "standalone"
        assert client.get(page.removesuffix("console/") + "connectors").status_code == 404


def test_rules_for_headers_of_rest_do_not_weaken_ours(world: World) -> None:
    rules = "set Content-Security-Policy: default-src *, set X-More: 1, set Cache-Control: public"
    page = get(world.serve(response_http_headers_config=rules), "/console/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-more"] == "1"
    assert page.headers["cache-control"] == "no-cache"


# Requests that are no good


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "\x00\x1f", "<img src=x onerror=alert(1)>", "\u202ename", "n" * 4000, "%2e%2e"]
)
def test_hostile_names_are_names_of_nothing(world: World, name: str) -> None:
    for path in (path for path in GET_ROUTES if TABLE["GET", path].at_owner):
        answer = world.ask("GET", path, params={"connector": name})
        assert answer.status_code == 404, (path, answer.text)
        assert answer.headers["content-type"] == "application/json"


def test_queries_that_could_be_read_in_two_ways_are_refused(world: World) -> None:
    for path in (path for path in GET_ROUTES if TABLE["GET", path].at_owner):
        assert world.ask("GET", f"{path}?connector=a&connector=b").status_code == 400
        # The events of all connectors are asked for without a name.
        assert world.ask("GET", path).status_code == (200 if path == "timeline" else 400)
        assert world.ask("GET", path, params={"connector": "n" * 4001}).status_code == 400


def test_bodies_that_are_too_large_or_no_json_are_refused(world: World) -> None:
    changes = [(verb, path) for verb, path in EVERY_ROUTE if verb != "GET"]
    for verb, path in changes[:2]:
        large = world.ask(
            verb, path, content=b"x" * (6 * 2**20), headers={"content-type": "application/json"}
        )
        assert large.status_code == 413
        form = world.ask(verb, path, content=b"a=b", headers={"content-type": "text/plain"})
        assert form.status_code == 415


def test_unknown_paths_stay_unknown(world: World) -> None:
    for path in ("nothing", "me/x", "..%2fconnectors", "%2e%2e"):
        assert world.ask("GET", path).status_code in (400, 404)


def test_a_body_that_does_not_come_is_not_waited_for(world: World) -> None:
    server = world.serve(icestream_rest_body_timeout_ms="200")
    head = (
        "PUT /console/api/pause?connector=x HTTP/1.1\r\nHost: localhost\r\nX-Icestream-Console: 1\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as slow:
        slow.sendall(head.encode())
        assert slow.recv(100).startswith(b"HTTP/1.1 408")


def test_every_answer_of_the_api_has_the_headers_of_the_page(world: World) -> None:
    answers = [
        world.ask("GET", "me"),
        world.ask("GET", "connector"),
        world.ask("PUT", "pause", params={"connector": "x"}),
        world.ask("GET", "me", headers={"x-icestream-console": "0"}),
        world.ask("GET", "connector", params={"connector": "x"}),
    ]
    assert [one.status_code for one in answers] == [200, 400, 404, 403, 404]
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert "set-cookie" not in answer.headers


def test_changes_are_in_the_audit_with_the_connector(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.create("or ders")
    with caplog.at_level("INFO", logger="icestream.audit"):
        world.ask("PUT", "pause", params={"connector": "or ders"})
    (line,) = [record.getMessage() for record in caplog.records if record.name == "icestream.audit"]
    assert "PUT /console/api/pause?connector=or" in line and "result=202" in line
