"""Key and trust stores for the embedded broker's TLS listener, made by Java's own keytool."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from icestream.api.errors import PreconditionError
from icestream.embedded.java import java
from icestream.embedded.ports import HOST

_TIMEOUT_S: Final = 60
_PASSWORD_VARIABLE: Final = "ICESTREAM_STORE_PASSWORD"


@dataclass(frozen=True)
class Certificates:
    """The broker's key store, and the trust stores that its clients may use; one password opens all."""

    keystore: Path
    truststore_pkcs12: Path
    truststore_jks: Path
    truststore_pem: Path
    password: str = field(repr=False)


def certificates(folder: Path, password: str) -> Certificates:
    """The stores of a folder, made at the first call: one certificate, for the loopback address only."""
    made = Certificates(
        folder / "broker.p12",
        folder / "truststore.p12",
        folder / "truststore.jks",
        folder / "truststore.pem",
        password,
    )
    if not made.truststore_jks.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for store in (made.keystore, made.truststore_pkcs12, made.truststore_pem):
            store.unlink(missing_ok=True)
        _make(made)
    return made


def _make(wanted: Certificates) -> None:
    keytool(
        *("-genkeypair", "-alias", "broker", "-keyalg", "RSA", "-keysize", "2048", "-validity", "3650"),
        *("-dname", "CN=icestream", "-ext", f"san=ip:{HOST}", "-ext", "bc=ca:true"),
        *("-storetype", "PKCS12", "-keystore", str(wanted.keystore)),
        password=wanted.password,
    )
    keytool(
        *("-exportcert", "-rfc", "-alias", "broker", "-file", str(wanted.truststore_pem)),
        *("-keystore", str(wanted.keystore)),
        password=wanted.password,
    )
    # The JKS comes last: its presence says that all are there.
    for kind, store in (("PKCS12", wanted.truststore_pkcs12), ("JKS", wanted.truststore_jks)):
        keytool(
            *("-importcert", "-noprompt", "-alias", "broker", "-file", str(wanted.truststore_pem)),
            *("-storetype", kind, "-keystore", str(store)),
            password=wanted.password,
        )


def keytool(*options: str, password: str) -> None:
    """Run keytool; the password of the store goes through the environment, never on the command line."""
    program = Path(java()).with_name("keytool")
    command = [str(program), "-J-XX:TieredStopAtLevel=1", *options, "-storepass:env", _PASSWORD_VARIABLE]
    ran = subprocess.run(
        command,
        env={**os.environ, _PASSWORD_VARIABLE: password},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
    )
    if ran.returncode != 0:
        raise PreconditionError(f"keytool {options[0]} failed: {(ran.stdout or ran.stderr).strip()}")
