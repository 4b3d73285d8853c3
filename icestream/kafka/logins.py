"""SASL logins, understood from Java's settings or librdkafka's. Called by `connection.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from icestream.api.config import subset
from icestream.api.errors import ConfigError, Problem
from icestream.kafka import jaas, keystores
from icestream.kafka.keystores import Named

SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS: Final = ("PLAIN", *SCRAM, "OAUTHBEARER", "GSSAPI")

_LOGIN_MODULES: Final[Mapping[str, Sequence[str]]] = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": SCRAM,
    "OAuthBearerLoginModule": ("OAUTHBEARER",),
    "Krb5LoginModule": ("GSSAPI",),
}
_MODULE_TO_WRITE: Final[Mapping[str, str]] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    **dict.fromkeys(SCRAM, "org.apache.kafka.common.security.scram.ScramLoginModule"),
}
_TOKEN_ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
_JAAS: Final = "sasl.jaas.config"
_HANDLER: Final = "sasl.login.callback.handler.class"
_UNSECURED_HANDLER: Final = "OAuthBearerUnsecuredLoginCallbackHandler"
_STRIMZI_HANDLER: Final = "JaasClientOauthLoginCallbackHandler"
_HANDLERS: Final = ("OAuthBearerLoginCallbackHandler", _UNSECURED_HANDLER, _STRIMZI_HANDLER)
_RETRIEVER: Final = "sasl.oauthbearer.jwt.retriever.class"
_BY_CREDENTIALS: Final = ("", "DefaultJwtRetriever", "ClientCredentialsJwtRetriever")
_BY_ASSERTION: Final = "JwtBearerJwtRetriever"
_ASSERTION_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
# librdkafka writes these names into a command line that a shell runs.
_IN_A_COMMAND: Final = re.compile(r"[\w.\-/@]*", re.ASCII)

JAVA_KEYS: Final = (
    "sasl.mechanism",
    _JAAS,
    _HANDLER,
    "sasl.kerberos.service.name",
    _TOKEN_ENDPOINT,
    _RETRIEVER,
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.scope",
)


@dataclass(frozen=True)
class OAuth:
    """A login by OAUTHBEARER: client credentials at a token endpoint, or an unsecured token for tests."""

    token_endpoint: str | None
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)
    endpoint_ca_pem: str | None = None
    grant_type: str = ""
    unsecured_principal: str = ""


@dataclass(frozen=True)
class Kerberos:
    service: str
    principal: str = ""
    keytab: str = ""


@dataclass(frozen=True)
class Login:
    mechanism: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    oauth: OAuth | None = None
    kerberos: Kerberos | None = None


def login_facts(settings: Mapping[str, str], named: Named) -> Login:
    """The login that the settings ask for; raises ConfigError on the user's key."""
    given = "sasl.mechanisms" if settings.get("sasl.mechanisms") else "sasl.mechanism"
    mechanism = settings.get(given, "").strip() or "GSSAPI"
    if mechanism not in MECHANISMS:
        key = named(given)
        raise _problem(
            key, f"'{key}={mechanism}' cannot be used here; use one of {', '.join(MECHANISMS[:-1])}"
        )
    login = _login_module(settings, mechanism, named)
    if mechanism == "OAUTHBEARER":
        return Login(mechanism, oauth=_oauth(settings, login, named))
    if mechanism == "GSSAPI":
        return Login(mechanism, kerberos=_kerberos(settings, login, named))
    username, password = _name_and_password(settings, login, mechanism, named)
    return Login(mechanism, username, password)


def _login_module(settings: Mapping[str, str], mechanism: str, named: Named) -> jaas.LoginModule | None:
    text = settings.get(_JAAS, "").strip()
    key = named(_JAAS)
    if not text:
        return None
    try:
        module = jaas.parse(text)
    except ValueError as error:
        raise _problem(key, f"'{key}' is not a JAAS text: {error}") from None
    serves = _LOGIN_MODULES.get(module.simple_name)
    if serves is None:
        raise _problem(
            key,
            f"'{key}' names {module.simple_name}, a Java class that cannot run here; use "
            f"{', '.join(list(_LOGIN_MODULES)[:-1])}",
        )
    if mechanism not in serves:
        raise _problem(
            key,
            f"'{key}' names {module.simple_name}, but {named('sasl.mechanism')} is {mechanism}; "
            f"set {named('sasl.mechanism')}={' or '.join(serves)}",
        )
    return module


def _name_and_password(
    settings: Mapping[str, str], login: jaas.LoginModule | None, mechanism: str, named: Named
) -> tuple[str, str]:
    key = named(_JAAS)
    if login is None:
        if settings.get("sasl.username") and "sasl.password" in settings:
            return settings["sasl.username"], settings["sasl.password"]
        raise _problem(
            key,
            f"'{key}' is not set, and {mechanism} needs a user; set {key}={_MODULE_TO_WRITE[mechanism]} "
            'required username="…" password="…";',
        )
    if login.options.get("tokenauth", "").lower() == "true":
        raise _problem(key, f"'{key}' asks for a delegation token, which cannot be used here; name a user")
    for option in ("username", "password"):
        if option not in login.options:
            raise _problem(key, f"'{key}' has no {option}; add {option}=\"…\"")
    return login.options["username"], login.options["password"]


def _oauth(settings: Mapping[str, str], login: jaas.LoginModule | None, named: Named) -> OAuth:
    options = dict(login.options) if login else {}
    handler = settings.get(_HANDLER, "").strip().rpartition(".")[2]
    if handler and handler not in _HANDLERS:
        key = named(_HANDLER)
        raise _problem(
            key,
            f"'{key}={settings[_HANDLER].strip()}' is a Java class that cannot run here; use "
            f"org.apache.kafka.common.security.oauthbearer.{_HANDLERS[0]} with client credentials",
        )
    if handler == _STRIMZI_HANDLER:
        options = _in_kafkas_words(options)
    endpoint = settings.get(_TOKEN_ENDPOINT, "").strip() or options.pop(_TOKEN_ENDPOINT, "")
    if not endpoint and (handler == _UNSECURED_HANDLER or "unsecuredLoginStringClaim_sub" in options):
        return _unsecured(options, named)
    if not re.match(r"https?://", endpoint):
        key = named(_TOKEN_ENDPOINT)
        raise _problem(key, f"'{key}={endpoint}' is not a token endpoint; set it to an http(s) address")
    grant = _grant_type(settings, named)
    credentials = not grant and not settings.get("sasl.oauthbearer.metadata.authentication.type")
    return OAuth(
        token_endpoint=endpoint,
        client_id=_credential("id", settings, options, named, is_needed=credentials),
        client_secret=_credential("secret", settings, options, named, is_needed=credentials),
        scope=settings.get("sasl.oauthbearer.scope", "").strip() or options.get("scope", ""),
        extensions=subset(options, "extension_"),
        endpoint_ca_pem=keystores.trusted_certificates(options, lambda key: f"{named(_JAAS)}: {key}"),
        grant_type=grant,
    )


def _grant_type(settings: Mapping[str, str], named: Named) -> str:
    retriever = settings.get(_RETRIEVER, "").strip().rpartition(".")[2]
    if retriever == _BY_ASSERTION:
        return _ASSERTION_GRANT
    if retriever not in _BY_CREDENTIALS:
        key = named(_RETRIEVER)
        raise _problem(
            key,
            f"'{key}={retriever}' is a Java class that cannot run here; use {_BY_CREDENTIALS[-1]}",
        )
    given = settings.get("sasl.oauthbearer.grant.type", "").strip()
    return "" if given == "client_credentials" else given


def _in_kafkas_words(options: Mapping[str, str]) -> dict[str, str]:
    """The options of Strimzi's handler under the names that Kafka's own one has."""
    names = {
        "oauth.token.endpoint.uri": _TOKEN_ENDPOINT,
        "oauth.client.id": "clientId",
        "oauth.client.secret": "clientSecret",
        "oauth.scope": "scope",
    }
    return {names.get(key, key.removeprefix("oauth.")): value for key, value in options.items()}


def _credential(
    part: str, settings: Mapping[str, str], options: Mapping[str, str], named: Named, *, is_needed: bool
) -> str:
    """The client's id or secret, from Java's key, librdkafka's, or the JAAS text."""
    key = f"sasl.oauthbearer.client.credentials.client.{part}"
    option = f"client{part.title()}"
    value = settings.get(key) or settings.get(f"sasl.oauthbearer.client.{part}") or options.get(option, "")
    if is_needed and not value:
        raise _problem(
            named(key), f"'{named(key)}' is not set; set it, or {option} in {named(_JAAS)}, to get a token"
        )
    return value


def _unsecured(options: Mapping[str, str], named: Named) -> OAuth:
    principal = options.get("unsecuredLoginStringClaim_sub", "")
    if not principal:
        key = named(_JAAS)
        raise _problem(
            key,
            f"'{key}' has no unsecuredLoginStringClaim_sub; add it, or set {named(_TOKEN_ENDPOINT)}",
        )
    return OAuth(None, unsecured_principal=principal)


def _kerberos(settings: Mapping[str, str], login: jaas.LoginModule | None, named: Named) -> Kerberos:
    options = login.options if login else {}
    service = settings.get("sasl.kerberos.service.name", "").strip() or options.get("serviceName", "")
    if not service:
        key = named("sasl.kerberos.service.name")
        raise _problem(key, f"'{key}' is not set; set it to the broker's Kerberos name, usually kafka")
    principal = options.get("principal", "") or settings.get("sasl.kerberos.principal", "")
    keytab = options.get("keyTab", "") or settings.get("sasl.kerberos.keytab", "")
    for value in (service, principal, keytab):
        if not _IN_A_COMMAND.fullmatch(value):
            key = named(_JAAS)
            raise _problem(
                key,
                f"'{key}': '{value}' has signs that a Kerberos name may not have; use letters, digits, ._-/@",
            )
    return Kerberos(service, principal, keytab)


def _problem(key: str, message: str) -> ConfigError:
    return ConfigError([Problem(key, message)])
