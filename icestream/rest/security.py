"""Who may speak to the API and how: TLS contexts from the worker's config, and basic authentication.

Called by `rest/server.py`; `client_context` is for requests from one worker to another.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from icestream.api.errors import PreconditionError
from icestream.cluster.history.change_events import ACTING_USER
from icestream.cluster.settings.rest_settings import RestConfig
from icestream.cluster.settings.rest_tls import Tls
from icestream.kafka.keystores import Identity
from icestream.rest.audit_log import USER


def server_context(tls: Tls) -> ssl.SSLContext:
    """For a listener; clients without a certificate are refused only if `client_auth` says so."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _apply(context, tls)
    context.verify_mode = tls.client_auth
    if tls.client_auth is not ssl.CERT_NONE:
        _trust(context, tls, ssl.Purpose.CLIENT_AUTH)
    return context


def client_context(config: RestConfig) -> ssl.SSLContext:
    """For requests to other workers of the cluster, which have certificates like ours."""
    tls = config.tls or Tls()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _apply(context, tls)
    context.check_hostname = tls.check_hostname
    _trust(context, tls, ssl.Purpose.SERVER_AUTH)
    return context


def _apply(context: ssl.SSLContext, tls: Tls) -> None:
    context.minimum_version = tls.oldest
    context.maximum_version = tls.newest
    if tls.ciphers:
        context.set_ciphers(":".join(tls.ciphers))
    if tls.identity is not None:
        _identify(context, tls.identity)


def _identify(context: ssl.SSLContext, identity: Identity) -> None:
    try:
        # OpenSSL's binding takes certificates from files only; this folder is for us alone, and gone at once.
        with tempfile.TemporaryDirectory(prefix="icestream-tls-") as folder:
            file = Path(folder) / "identity.pem"
            file.touch(mode=0o600)
            file.write_text(identity.key_pem + identity.certificates_pem)
            context.load_cert_chain(file)
    except ssl.SSLError as error:
        raise PreconditionError(
            f"the certificate and key for https do not do ({error.reason}); make the key store anew"
        ) from None
    except OSError as error:
        raise PreconditionError(
            f"cannot write a temporary file ({error.strerror}); set TMPDIR to a folder that we may write to"
        ) from None


def _trust(context: ssl.SSLContext, tls: Tls, purpose: ssl.Purpose) -> None:
    if tls.trusted_pem is None:
        context.load_default_certs(purpose)
        return
    context.load_verify_locations(cadata=tls.trusted_pem)
    # Java trusts whatever is in its store, even if that was signed by somebody else.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def guarded(app: Starlette, credentials: Mapping[str, str]) -> Starlette:
    """Ask for a user on every route; paths and verbs that do not exist stay 404 and 405, as in Jersey.

    Kafka Connect lets two paths through, on which its workers send each other signed requests. Ours send each
    other nothing but what users send, with the user's login, so there is nothing to let through.
    """
    for route in app.router.routes:
        if not isinstance(route, Route):
            raise TypeError(f"{route!r} cannot be guarded")
        route.app = BasicAuthentication(route.app, credentials)
    return app


class BasicAuthentication:
    """Answers 401 to whoever does not name a user and the password of it. `challenge` makes browsers ask."""

    def __init__(self, app: ASGIApp, credentials: Mapping[str, str], challenge: str = "") -> None:
        self._app = app
        self._more = {"www-authenticate": challenge} if challenge else {}
        self._credentials = {user: password.encode() for user, password in credentials.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._knows(scope, Headers(scope=scope).get("authorization", "")):
            # Seen by whatever this request does, also in the threads of handlers.
            ACTING_USER.set(scope[USER])
            await self._app(scope, receive, send)
            return
        kind = "text/plain" if scope["method"] == "OPTIONS" else "application/json"
        # Without charset and without WWW-Authenticate, as the real one answers.
        refusal = Response("User cannot access the resource.", 401, {"content-type": kind, **self._more})
        await refusal(scope, receive, send)

    def _knows(self, scope: Scope, authorization: str) -> bool:
        user, password = _user_and_password(authorization)
        expected = self._credentials.get(user)
        # For the audit. A name that nobody has is not told: people type passwords there.
        scope[USER] = user if expected is not None else "(unknown)" if user else "(none)"
        # Compared for unknown users too, so that time does not tell which users exist.
        is_right = hmac.compare_digest(password.encode(), expected if expected is not None else b"")
        return expected is not None and is_right


def _user_and_password(authorization: str) -> tuple[str, str]:
    """Empty texts for whatever is not `Basic base64(user:password)`; padding may be missing."""
    method, _, encoded = authorization.partition(" ")
    if method.lower() != "basic":
        return "", ""
    stripped = encoded.rstrip("=")
    try:
        decoded = base64.b64decode(stripped + "=" * (-len(stripped) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return "", ""
    user, colon, password = decoded.partition(":")
    return (user, password) if user and colon else ("", "")
