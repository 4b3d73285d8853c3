"""Java's `ssl.*` settings of a Schema Registry as Python's TLS context; called by its client."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path

from icestream.api.errors import ConfigError, Problem
from icestream.kafka.keystores import identity, trusted_certificates


def tls_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """Settings without their prefix `schema.registry.`; raises ConfigError."""
    trusted = trusted_certificates(settings, _named)
    own = identity(settings, _named)
    context = ssl.create_default_context(cadata=trusted)
    if settings.get("ssl.endpoint.identification.algorithm", "https") == "":
        context.check_hostname = False
    if own is not None:
        try:
            # OpenSSL's binding takes certificates from files only; this folder is for us alone, and gone at
            # once.
            with tempfile.TemporaryDirectory(prefix="icestream-tls-") as folder:
                file = Path(folder) / "identity.pem"
                file.touch(mode=0o600)
                file.write_text(own.key_pem + own.certificates_pem)
                context.load_cert_chain(file)
        except ssl.SSLError as error:
            key = _named("ssl.keystore.location")
            message = f"the certificate and key of {key} do not do ({error.reason}); make the key store anew"
            raise ConfigError([Problem(key, message)]) from None
    return context


def _named(key: str) -> str:
    return f"schema.registry.{key}"
