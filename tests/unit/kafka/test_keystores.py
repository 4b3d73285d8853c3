"""Key stores as Java's own keytool makes them."""

import ssl
import subprocess
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from icestream.api.errors import ConfigError
from icestream.embedded.certificates import keytool
from icestream.embedded.java import java
from icestream.kafka.clients import client_settings, quiet
from icestream.kafka.keystores import identity, trusted_certificates

STORE, KEY = "store-pass", "key-pass"


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An EC key with its certificate in each format; `other-key.jks` has another password for the key."""
    folder = tmp_path_factory.mktemp("stores")
    pair = ("-genkeypair", "-alias", "client", "-keyalg", "EC", "-dname", "CN=client", "-validity", "9")
    keytool(*pair, "-storetype", "PKCS12", "-keystore", str(folder / "key.p12"), password=STORE)
    keytool(
        *pair,
        "-storetype",
        "JKS",
        "-keypass",
        KEY,
        "-keystore",
        str(folder / "other-key.jks"),
        password=STORE,
    )
    keytool(
        *pair, "-storetype", "JKS", "-keypass", STORE, "-keystore", str(folder / "key.jks"), password=STORE
    )
    keytool(*pair, "-storetype", "JCEKS", "-keystore", str(folder / "key.jceks"), password=STORE)
    keytool(
        *pair,
        *("-J-Dkeystore.pkcs12.legacy=true", "-storetype", "PKCS12", "-keystore", str(folder / "old.p12")),
        password=STORE,
    )
    export = ("-exportcert", "-rfc", "-alias", "client", "-keystore", str(folder / "key.p12"))
    keytool(*export, "-file", str(folder / "cert.pem"), password=STORE)
    for kind, name in (("PKCS12", "trust.p12"), ("JKS", "trust.jks")):
        add = ("-importcert", "-noprompt", "-storetype", kind, "-keystore", str(folder / name))
        keytool(*add, "-alias", "one", "-file", str(folder / "cert.pem"), password=STORE)
    own = identity(keystore(folder / "key.p12"))
    assert own
    key = load_pem_private_key(own.key_pem.encode(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(KEY.encode()))
    (folder / "key.pem").write_text(own.key_pem + own.certificates_pem)
    (folder / "locked.pem").write_text(locked.decode() + own.certificates_pem)
    return folder


def keystore(file: Path, kind: str = "JKS", **more: str) -> dict[str, str]:
    password = {} if kind == "PEM" else {"ssl.keystore.password": STORE}
    return {"ssl.keystore.location": str(file), "ssl.keystore.type": kind, **password, **more}


def truststore(file: Path, kind: str = "JKS", password: str | None = STORE) -> dict[str, str]:
    settings = {"ssl.truststore.location": str(file), "ssl.truststore.type": kind}
    return settings if password is None else {**settings, "ssl.truststore.password": password}


def problem(settings: dict[str, str]) -> tuple[str, str]:
    with pytest.raises(ConfigError) as caught:
        trusted_certificates(settings)
        identity(settings)
    (only,) = caught.value.problems
    assert STORE not in only.message and KEY not in only.message
    return only.key, only.message


@pytest.mark.parametrize(
    ("name", "kind", "key_password"),
    [
        ("key.p12", "PKCS12", None),
        # Java opens a PKCS #12 file under the name JKS, which is the default.
        ("key.p12", "JKS", None),
        ("old.p12", "PKCS12", None),
        ("key.jks", "JKS", None),
        ("key.jks", "PKCS12", None),
        ("other-key.jks", "JKS", KEY),
        ("key.pem", "PEM", None),
        ("locked.pem", "PEM", KEY),
    ],
)
def test_a_key_and_its_certificate_fit_together(
    stores: Path, name: str, kind: str, key_password: str | None, tmp_path: Path
) -> None:
    more = {"ssl.key.password": key_password} if key_password else {}
    own = identity(keystore(stores / name, kind, **more))
    assert own
    assert "BEGIN PRIVATE KEY" in own.key_pem
    assert own.key_pem not in repr(own)
    (tmp_path / "both.pem").write_text(own.certificates_pem + own.key_pem)
    # OpenSSL refuses a key that is not the certificate's.
    ssl.create_default_context().load_cert_chain(tmp_path / "both.pem")
    settings = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SSL"}
    AdminClient(quiet(client_settings({**settings, **keystore(stores / name, kind, **more)})))


@pytest.mark.parametrize(
    ("name", "kind", "password"),
    [
        ("trust.p12", "PKCS12", STORE),
        ("trust.p12", "JKS", STORE),
        ("trust.jks", "JKS", STORE),
        ("trust.jks", "JKS", None),
        ("cert.pem", "PEM", None),
        # The certificate of a key is trusted as well.
        ("key.p12", "PKCS12", STORE),
        ("other-key.jks", "JKS", STORE),
    ],
)
def test_trusted_certificates(stores: Path, name: str, kind: str, password: str | None) -> None:
    found = trusted_certificates(truststore(stores / name, kind, password))
    assert found
    (certificate,) = x509.load_pem_x509_certificates(found.encode())
    assert certificate.subject.rfc4514_string() == "CN=client"


def test_pem_texts_may_stand_in_the_settings(stores: Path) -> None:
    text = (stores / "cert.pem").read_text()
    assert trusted_certificates({"ssl.truststore.type": "PEM", "ssl.truststore.certificates": text})
    # On one line with blanks, as people paste it, too.
    own = identity(
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": text,
            "ssl.keystore.key": (stores / "locked.pem").read_text().partition("-----BEGIN CERT")[0],
            "ssl.key.password": KEY,
        }
    )
    assert own and "BEGIN PRIVATE KEY" in own.key_pem


def test_a_store_of_no_name_is_none() -> None:
    assert trusted_certificates({}) is None
    assert identity({}) is None


@pytest.mark.parametrize("name", ["trust.p12", "trust.jks"])
def test_a_wrong_password_is_told_by_key_and_file(stores: Path, name: str) -> None:
    key, message = problem(truststore(stores / name, password="wrong"))
    assert key == "ssl.truststore.password"
    assert message == (f"the password in 'ssl.truststore.password' does not open {stores / name}; check it")


@pytest.mark.parametrize(
    ("name", "more", "key"),
    [
        ("key.jks", {"ssl.keystore.password": "wrong"}, "ssl.keystore.password"),
        ("other-key.jks", {}, "ssl.keystore.password"),
        ("other-key.jks", {"ssl.key.password": "wrong"}, "ssl.key.password"),
        ("key.p12", {"ssl.keystore.password": "wrong"}, "ssl.keystore.password"),
    ],
)
def test_a_wrong_password_of_a_key_store(stores: Path, name: str, more: dict[str, str], key: str) -> None:
    found, message = problem({**keystore(stores / name), **more})
    assert found == key
    assert f"does not open {stores / name}" in message


def test_the_type_must_fit_the_file(stores: Path) -> None:
    for name, kind, told in (
        ("cert.pem", "JKS", "is a PEM file, but ssl.truststore.type is JKS; set ssl.truststore.type=PEM"),
        ("trust.jks", "PEM", "is not a PEM file; set ssl.truststore.type=PKCS12 or =JKS"),
        ("key.jceks", "JKS", "is a JCEKS store, which cannot be read here; convert it"),
    ):
        key, message = problem(truststore(stores / name, kind))
        assert key == "ssl.truststore.location"
        assert message.startswith(f"'ssl.truststore.location={stores / name}' {told}")
    key, message = problem(truststore(stores / "trust.p12", "BCFKS"))
    assert (key, message) == (
        "ssl.truststore.type",
        "'ssl.truststore.type=BCFKS' is not a store that can be read; use JKS, PKCS12, PEM",
    )


def test_a_file_that_is_missing_or_damaged(stores: Path, tmp_path: Path) -> None:
    _, message = problem(truststore(tmp_path / "none.jks"))
    assert message == (
        f"'ssl.truststore.location={tmp_path / 'none.jks'}' cannot be read "
        "(No such file or directory); check the path"
    )
    cut = tmp_path / "cut.jks"
    cut.write_bytes((stores / "trust.jks").read_bytes()[:60])
    _, message = problem(truststore(cut, password=None))
    assert "cannot be read as JKS" in message
    cut.write_bytes(b"hello")
    _, message = problem(truststore(cut))
    assert message.endswith("is neither a JKS nor a PKCS12 store; name one that is")


def test_a_key_store_without_a_key(stores: Path) -> None:
    for name in ("trust.p12", "trust.jks"):
        key, message = problem(keystore(stores / name))
        assert key == "ssl.keystore.location"
        assert "holds no private key" in message
    key, message = problem({"ssl.keystore.type": "PEM", "ssl.keystore.key": "x"})
    assert key == "ssl.keystore.certificate.chain"


def test_the_password_of_a_store_is_not_on_keytools_command_line(
    stores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    run = subprocess.run

    def spy(command: list[str], **options: object) -> object:
        seen.append(command)
        return run(command, **options)  # type: ignore[call-overload]

    java()
    monkeypatch.setattr(subprocess, "run", spy)
    keytool("-list", "-keystore", str(stores / "trust.jks"), password=STORE)
    assert seen and not any(STORE in word for command in seen for word in command)
