"""REST's keys: what they mean, and one sentence on the key for whatever is wrong."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from icestream.api.errors import ConfigError
from icestream.cluster.settings.rest_settings import CrossOrigin, HeaderRule, Listener, parse_rest
from icestream.cluster.settings.rest_tls import openssl_name
from icestream.embedded.certificates import Certificates, certificates

EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"


def problems_of(raw: dict[str, str], environ: dict[str, str] | None = None) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        parse_rest(raw, environ or {})
    return {problem.key: problem.message for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("raw", "listeners"),
    [
        ({}, [Listener("http", "127.0.0.1", 8083)]),
        ({"rest.port": "9000"}, [Listener("http", "127.0.0.1", 9000)]),
        ({"rest.advertised.host.name": "a"}, [Listener("http", "", 8083)]),
        ({"rest.advertised.port": "80", "rest.port": "9000"}, [Listener("http", "", 9000)]),
        ({"rest.advertised.listener": "http"}, [Listener("http", "", 8083)]),
        ({"rest.host.name": "10.0.0.1", "rest.port": "9000"}, [Listener("http", "10.0.0.1", 9000)]),
        ({"listeners": "http://:8083"}, [Listener("http", "", 8083)]),
        (
            {"listeners": "HTTP://myhost:8083 , http://[::1]:0"},
            [Listener("http", "myhost", 8083), Listener("http", "::1", 0)],
        ),
        ({"listeners": "http://a:1", "rest.port": "9000"}, [Listener("http", "a", 1)]),
    ],
)
def test_listeners(raw: dict[str, str], listeners: list[Listener]) -> None:
    assert list(parse_rest(raw, {}).listeners) == listeners


@pytest.mark.parametrize(
    ("raw", "doors"),
    [
        ({}, ""),
        ({"listeners": "http://localhost:1,http://127.0.0.2:1,http://[::1]:1"}, ""),
        ({"listeners": "http://:8083"}, "http://:8083"),
        ({"rest.advertised.host.name": "a"}, "http://:8083"),
        ({"listeners": "http://127.0.0.1:1,http://10.0.0.1:2"}, "http://10.0.0.1:2"),
        ({"rest.host.name": "::"}, "http://[::]:8083"),
        ({"admin.listeners": "http://0.0.0.0:9"}, "http://0.0.0.0:9"),
    ],
)
def test_an_open_door_is_a_warning(raw: dict[str, str], doors: str, tmp_path: Path) -> None:
    config = parse_rest(raw, {})
    assert (config.exposure or "").startswith(f"REST on {doors} can be reached" if doors else "")
    assert list(config.warnings) == ([config.exposure] if doors else [])
    users = tmp_path / "users.properties"
    users.write_text("alice=secret")
    locked = parse_rest({**raw, "icestream.rest.auth.credentials.file": str(users)}, {})
    # The listeners of /admin never ask for users.
    assert (locked.exposure is None) == ("admin.listeners" not in raw)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "localhost:8083",
        "ftp://a:1",
        "http://a",
        "http://a:70000",
        "http://a:1,,http://b:2",
        "http://a:-1",
    ],
)
def test_an_address_that_is_none_is_told(value: str) -> None:
    assert set(problems_of({"listeners": value})) == {"listeners"}


def test_admin_listeners_are_absent_empty_or_their_own() -> None:
    assert parse_rest({}, {}).admin_listeners is None
    assert parse_rest({"admin.listeners": ""}, {}).admin_listeners == ()
    own = parse_rest({"admin.listeners": "http://127.0.0.1:0"}, {}).admin_listeners
    assert own == (Listener("http", "127.0.0.1", 0),)
    assert set(problems_of({"admin.listeners": "nowhere"})) == {"admin.listeners"}


@pytest.mark.parametrize(
    ("raw", "url"),
    [
        ({"listeners": "http://127.0.0.1:0"}, "http://127.0.0.1:7001"),
        ({"listeners": "http://127.0.0.1:0", "rest.advertised.port": "99"}, "http://127.0.0.1:99"),
        ({"listeners": "http://:0", "rest.advertised.host.name": "pod-1"}, "http://pod-1:7001"),
        ({"listeners": "http://:0", "rest.advertised.host.name": "::1"}, "http://[::1]:7001"),
        ({"listeners": "http://a:1,http://b:2"}, "http://a:7001"),
    ],
)
def test_how_others_reach_us(raw: dict[str, str], url: str) -> None:
    assert parse_rest(raw, {}).advertised_url([7001, 7002]) == url


def test_all_interfaces_are_advertised_by_an_address() -> None:
    url = parse_rest({}, {}).advertised_url([8083])
    assert url.startswith("http://")
    assert url.endswith(":8083")
    assert not url.startswith(("http://:", "http://0.0.0.0"))


def test_headers_are_split_as_jetty_splits_them() -> None:
    text = 'set X-Frame-Options: DENY, "add Cache-Control: no-cache, no-store", SETDATE Expires: 0'
    text += ",add  X-At : http://a"
    assert parse_rest({"response.http.headers.config": text}, {}).headers == (
        HeaderRule("set", "X-Frame-Options", "DENY"),
        HeaderRule("add", "Cache-Control", "no-cache, no-store"),
        HeaderRule("setDate", "Expires", "0"),
        HeaderRule("add", "X-At", "http://a"),
    )


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("put X: 1", "'put' is not one of set, add, setDate, addDate"),
        ("set", "write 'action name: value'"),
        ("set X", "write 'action name: value'"),
        ("set X:", "write 'action name: value'"),
        ("set X Y: 1", "'X Y' is not a header's name"),
        ("set : 1", "'' is not a header's name"),
        ("addDate X: soon", "'soon' is not a number of milliseconds"),
        ("set X: a,,set Y: b", "'' is not one of"),
        ("set X: größe", "characters that a header cannot have"),
    ],
)
def test_a_header_that_is_none_is_told(rule: str, reason: str) -> None:
    assert reason in problems_of({"response.http.headers.config": rule})["response.http.headers.config"]


def test_origins_and_methods() -> None:
    assert parse_rest({}, {}).cross_origin == CrossOrigin()
    raw = {"access.control.allow.origin": "http://ui, *", "access.control.allow.methods": "get,PUT"}
    assert parse_rest(raw, {}).cross_origin == CrossOrigin(("http://ui", "*"), ("GET", "PUT"))
    told = problems_of({"access.control.allow.origin": "*.good.org"})["access.control.allow.origin"]
    assert "'*.good.org' is not a regular expression" in told


@pytest.fixture
def users_file(tmp_path: Path) -> Path:
    file = tmp_path / "credentials.properties"
    file.write_text("# people\nalice=wonder land\nbob = b:ob\n")
    return file


def jaas(folder: Path, text: str) -> Path:
    file = folder / "jaas.conf"
    file.write_text(text)
    return file


def test_users_are_found_through_kafka_opts(tmp_path: Path, users_file: Path) -> None:
    file = jaas(
        tmp_path,
        f'KafkaClient {{ x.y.Z required a="}};" b=c; }};\n/* ours: */ // KafkaConnect\nKafkaConnect {{\n'
        f'  {MODULE} required\n  file="{users_file}";\n}};\n',
    )
    environ = {"KAFKA_OPTS": f"-Xmx1g '-Djava.security.auth.login.config={file}' -Dx=y"}
    config = parse_rest({"rest.extension.classes": EXTENSION}, environ)
    assert config.credentials == {"alice": "wonder land", "bob": "b:ob"}
    assert "wonder" not in repr(config)


def test_users_are_found_through_our_keys(tmp_path: Path, users_file: Path) -> None:
    file = jaas(tmp_path, f'KafkaConnect {{ {MODULE} required file="{users_file}"; }};')
    for raw in (
        {"rest.extension.classes": EXTENSION, "icestream.rest.auth.jaas.file": str(file)},
        {"rest.extension.classes": EXTENSION, "icestream.rest.auth.credentials.file": str(users_file)},
        {"icestream.rest.auth.credentials.file": str(users_file)},
    ):
        assert (
            parse_rest(raw, {"KAFKA_OPTS": "-Djava.security.auth.login.config=/none"}).credentials is not None
        )


def test_without_the_extension_nobody_is_asked() -> None:
    environ = {"KAFKA_OPTS": "-Djava.security.auth.login.config=/none"}
    assert parse_rest({}, environ).credentials is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("KafkaClient { a.B required; };", "has no entry 'KafkaConnect'"),
        ("KafkaConnect { a.B required; };", "uses a.B, which cannot run here"),
        (f"KafkaConnect {{ {MODULE} required; }};", 'must have one login module with file="PATH"'),
        (
            f'KafkaConnect {{ {MODULE} required file="${{x}}/y"; }};',
            'must have one login module with file="PATH"',
        ),
        (f'KafkaConnect {{ {MODULE} required file="/x"', "is broken"),
        (f'KafkaConnect {{ {MODULE} required file "/x"; }};', "is broken"),
        (f'KafkaConnect {{ {MODULE} required file="/none/users"; }};', "cannot read /none/users"),
        ("", "has no entry"),
    ],
)
def test_a_jaas_file_that_does_not_do_is_told(tmp_path: Path, text: str, reason: str) -> None:
    raw = {"rest.extension.classes": EXTENSION, "icestream.rest.auth.jaas.file": str(jaas(tmp_path, text))}
    assert reason in problems_of(raw)["icestream.rest.auth.jaas.file"]


def test_missing_files_and_foreign_extensions_stop_the_start(tmp_path: Path) -> None:
    told = problems_of({"rest.extension.classes": EXTENSION})["rest.extension.classes"]
    assert "no file of users; set 'icestream.rest.auth.credentials.file'" in told
    environ = {"KAFKA_OPTS": "-Djava.security.auth.login.config=/none/jaas.conf"}
    told = problems_of({"rest.extension.classes": EXTENSION}, environ)["rest.extension.classes"]
    assert "cannot read the JAAS file /none/jaas.conf: No such file" in told
    assert (
        "cannot run here"
        in problems_of({"rest.extension.classes": "com.corp.Audit"})["rest.extension.classes"]
    )
    (tmp_path / "empty").write_text("# nobody\n")
    raw = {"icestream.rest.auth.credentials.file": str(tmp_path / "empty")}
    assert "would let everybody in" in problems_of(raw)["icestream.rest.auth.credentials.file"]


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("stores"), "hush-hush")


def https(stores: Certificates, prefix: str = "listeners.https.", **more: str) -> dict[str, str]:
    keys = {
        "ssl.keystore.location": str(stores.keystore),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": stores.password,
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    return {"listeners": "https://127.0.0.1:0", **{prefix + key: value for key, value in keys.items()}}


@pytest.mark.parametrize("prefix", ["", "listeners.https."])
def test_certificates_are_read_with_and_without_prefix(stores: Certificates, prefix: str) -> None:
    config = parse_rest(https(stores, prefix), {})
    assert config.tls is not None
    assert config.tls.identity is not None
    assert config.advertised_url([8443]) == "https://127.0.0.1:8443"
    assert "PRIVATE" not in repr(config)


def test_one_key_under_the_prefix_hides_the_plain_ones(stores: Certificates) -> None:
    raw = {**https(stores, ""), "listeners.https.ssl.client.auth": "none"}
    assert "https needs a certificate" in problems_of(raw)["listeners.https.ssl.keystore.location"]


def test_keystores_are_read_only_for_https(stores: Certificates) -> None:
    raw = {**https(stores, "", ssl_keystore_location="/none"), "listeners": "http://127.0.0.1:0"}
    assert parse_rest(raw, {}).tls is None


def test_admin_listeners_have_their_own_certificates(stores: Certificates) -> None:
    raw = {
        **https(stores, "admin.listeners.https."),
        "listeners": "http://:0",
        "admin.listeners": "https://:0",
    }
    config = parse_rest(raw, {})
    assert config.tls is None
    assert config.admin_tls is not None


@pytest.mark.parametrize(
    ("more", "key", "reason"),
    [
        ({"ssl_keystore_password": "wrong"}, "ssl.keystore.password", "does not open"),
        ({"ssl_keystore_location": "/none.p12"}, "ssl.keystore.location", "cannot be read (No such file"),
        ({"ssl_client_auth": "maybe"}, "ssl.client.auth", "write one of none, requested, required"),
        ({"ssl_enabled_protocols": "TLSv1.1"}, "ssl.enabled.protocols", "write TLSv1.2, TLSv1.3 or both"),
        ({"ssl_enabled_protocols": "TLSv9"}, "ssl.enabled.protocols", "write TLSv1.2, TLSv1.3 or both"),
        ({"ssl_cipher_suites": "TLS_X_WITH_Y_Z"}, "ssl.cipher.suites", "which OpenSSL here does not know"),
        (
            {"ssl_cipher_suites": "TLS_AES_128_GCM_SHA256", "ssl_enabled_protocols": "TLSv1.2"},
            "ssl.cipher.suites",
            "has no suite for the versions",
        ),
    ],
)
def test_wrong_tls_keys_are_told(stores: Certificates, more: dict[str, str], key: str, reason: str) -> None:
    told = problems_of(https(stores, **more))
    assert list(told) == [f"listeners.https.{key}"]
    assert reason in told[f"listeners.https.{key}"]
    assert stores.password not in str(told)


def test_versions_follow_protocols_and_suites(stores: Certificates) -> None:
    old, new = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    suite = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    cases = [
        ({}, (old, new), ()),
        ({"ssl_enabled_protocols": "TLSv1.3"}, (new, new), ()),
        ({"ssl_cipher_suites": suite}, (old, old), ("ECDHE-RSA-AES128-GCM-SHA256",)),
        (
            {"ssl_cipher_suites": f"{suite},TLS_AES_128_GCM_SHA256"},
            (old, new),
            ("ECDHE-RSA-AES128-GCM-SHA256",),
        ),
    ]
    for more, versions, ciphers in cases:
        tls = parse_rest(https(stores, **more), {}).tls
        assert tls is not None
        assert ((tls.oldest, tls.newest), tls.ciphers) == (versions, ciphers)


def test_what_is_not_honoured_is_warned_of(stores: Certificates) -> None:
    more = {
        "ssl_enabled_protocols": "TLSv1.1,TLSv1.2,TLSv1.3",
        "ssl_cipher_suites": "TLS_AES_128_GCM_SHA256",
        "ssl_keymanager_algorithm": "PKIX",
    }
    told = "\n".join(parse_rest(https(stores, **more), {}).warnings)
    assert "versions before TLSv1.2" in told
    assert "leaves out suites of TLS 1.3" in told
    assert "'listeners.https.ssl.keymanager.algorithm' has no effect" in told


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_128_CBC_SHA256", "DHE-RSA-AES128-SHA256"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_suites_are_known_by_their_java_names(java: str, openssl: str) -> None:
    assert openssl_name(java) == openssl
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(f"{openssl}:@SECLEVEL=0")
