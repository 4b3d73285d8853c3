"""A connection to Kafka in the words of kafka-python, which keeps a worker in its group. Used by `group`."""

from __future__ import annotations

import json
import ssl
import tempfile
import time
import urllib.parse
import urllib.request
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

from kafka.net.sasl.oauth import AbstractTokenProvider

from icestream.api.errors import ConfigError, Problem, SourceUnavailable
from icestream.api.nesting import read_json
from icestream.kafka.connection import Connection
from icestream.kafka.logins import OAuth

_TOKEN_SECONDS: Final = 10.0
_LONGEST_ANSWER: Final = 2**20


def settings_of(connection: Connection) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "bootstrap_servers": list(connection.bootstrap_servers),
        "security_protocol": connection.protocol,
    }
    if connection.uses_tls:
        settings["ssl_context"] = _context(connection)
    if connection.uses_sasl:
        settings |= _login(connection)
    return settings


def _context(connection: Connection) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=connection.ca_pem)
    context.check_hostname = connection.check_hostname and connection.verifies_certificate
    if not connection.verifies_certificate:
        context.verify_mode = ssl.CERT_NONE
    if connection.cert_pem and connection.key_pem:
        # The ssl module reads certificates of its own from files only.
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "client.pem"
            file.touch(mode=0o600)
            file.write_text(f"{connection.key_pem}\n{connection.cert_pem}\n")
            context.load_cert_chain(file)
    return context


def _login(connection: Connection) -> dict[str, Any]:
    login: dict[str, Any] = {"sasl_mechanism": connection.mechanism}
    if connection.oauth is not None:
        return {**login, "sasl_oauth_token_provider": _Tokens(connection.oauth)}
    if connection.kerberos is not None:
        raise ConfigError(
            [
                Problem(
                    "sasl.mechanism",
                    "a distributed worker cannot log in by GSSAPI: its group membership has no Kerberos; use "
                    "SCRAM, OAUTHBEARER or client certificates, or a standalone worker",
                )
            ]
        )
    return {
        **login,
        "sasl_plain_username": connection.username,
        "sasl_plain_password": connection.password,
    }


class _Tokens(AbstractTokenProvider):  # type: ignore[misc]
    """Asks the token endpoint at every login, by client credentials."""

    def __init__(self, oauth: OAuth) -> None:
        self._oauth = oauth

    def token(self) -> str:
        if self._oauth.token_endpoint is None:
            return _unsecured_token(self._oauth.unsecured_principal)
        form = {"grant_type": "client_credentials"}
        if self._oauth.scope:
            form["scope"] = self._oauth.scope
        login = f"{self._oauth.client_id}:{self._oauth.client_secret}".encode()
        request = urllib.request.Request(
            self._oauth.token_endpoint,
            data=urllib.parse.urlencode(form).encode(),
            headers={"Authorization": f"Basic {b64encode(login).decode()}", "Accept": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=_TOKEN_SECONDS) as answer:
                return str(read_json(answer.read(_LONGEST_ANSWER))["access_token"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SourceUnavailable(
                f"the token endpoint {self._oauth.token_endpoint} gave no token: {error}"
            ) from error

    def extensions(self) -> dict[str, str]:
        return dict(self._oauth.extensions)


def _unsecured_token(subject: str) -> str:
    """A token that nobody signed, as brokers of tests accept it."""

    def part(document: dict[str, object]) -> str:
        return b64encode(json.dumps(document).encode()).decode().rstrip("=")

    now = int(time.time())
    return f"{part({'alg': 'none'})}.{part({'sub': subject, 'iat': now, 'exp': now + 3600})}."
