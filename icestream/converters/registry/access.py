"""Where Schema Registries are and how to speak to them, from a converter's settings: addresses, logins, time
limits, TLS. For `client`."""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from icestream.api.errors import ConfigError, Problem
from icestream.kafka.keystores import identity, trusted_certificates


@dataclass(frozen=True)
class Access:
    """Where registries are and how to speak to them."""

    urls: tuple[str, ...]
    authorization: str | None = field(default=None, repr=False)
    by_url: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Authorization that was written into single addresses."""
    connect_s: float = 10.0
    read_s: float = 30.0
    ssl: Mapping[str, str] = field(default_factory=dict, repr=False)


def access(settings: Mapping[str, str]) -> Access:
    """Read from a converter's settings; raises ConfigError."""
    given = [one.strip() for one in settings.get("schema.registry.url", "").split(",") if one.strip()]
    if not given:
        message = 'Missing required configuration "schema.registry.url" which has no default value.'
        raise ConfigError([Problem("schema.registry.url", message)])
    urls = [_without_user(url) for url in given]
    tls = {
        key.removeprefix("schema.registry."): value
        for key, value in settings.items()
        if key.startswith("schema.registry.ssl.")
    }
    return Access(
        tuple(url for url, _ in urls),
        _authorization(settings),
        {url: user for url, user in urls if user},
        _seconds(settings, "http.connect.timeout.ms", 10.0),
        _seconds(settings, "http.read.timeout.ms", 30.0),
        tls,
    )


def _without_user(url: str) -> tuple[str, str | None]:
    parts = _parts(url)
    if parts is None:
        # The address is not shown: what is wrong with it may be a password that is not escaped.
        message = (
            "Invalid value for configuration schema.registry.url: write http://host:port, and signs such as "
            "/ # , @ of a password as %2F %23 %2C %40"
        )
        raise ConfigError([Problem("schema.registry.url", message)])
    host = parts.netloc.rpartition("@")[2]
    bare = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
    if parts.username is None:
        return bare, None
    return bare, _basic(f"{unquote(parts.username)}:{unquote(parts.password or '')}")


def _parts(url: str) -> SplitResult | None:
    """None: it is no address of a registry."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number
        return None
    # An @ behind the host belongs to a password that has cut the host off.
    behind = parts.path + parts.query + parts.fragment
    return parts if usable and url.isprintable() and " " not in url and "@" not in behind else None


def _basic(user_info: str) -> str:
    return f"Basic {base64.b64encode(user_info.encode()).decode()}"


def _authorization(settings: Mapping[str, str]) -> str | None:
    token = settings.get("bearer.auth.token", "").strip()
    bearer = settings.get("bearer.auth.credentials.source")
    if bearer and bearer != "STATIC_TOKEN":
        raise _unknown_source("bearer.auth.credentials.source", bearer, "STATIC_TOKEN")
    if bearer and token:
        if not (token.isascii() and token.isprintable()):
            message = "bearer.auth.token has signs that no HTTP header may have; check where it is taken from"
            raise ConfigError([Problem("bearer.auth.token", message)])
        return f"Bearer {token}"
    source = settings.get("basic.auth.credentials.source", "URL").strip() or "URL"
    if source == "URL":
        return None
    if source != "USER_INFO":
        raise _unknown_source("basic.auth.credentials.source", source, "URL, USER_INFO")
    user_info = settings.get("basic.auth.user.info") or settings.get("schema.registry.basic.auth.user.info")
    if not user_info:
        message = (
            "basic.auth.user.info must be provided when basic.auth.credentials.source is set to USER_INFO"
        )
        raise ConfigError([Problem("basic.auth.user.info", message)])
    return _basic(user_info)


def _unknown_source(key: str, value: str, known: str) -> ConfigError:
    return ConfigError(
        [Problem(key, f"Invalid value {value} for configuration {key}: this worker knows {known}")]
    )


def _seconds(settings: Mapping[str, str], key: str, default: float) -> float:
    text = settings.get(key)
    if text is None:
        return default
    try:
        return max(int(text), 1) / 1000
    except ValueError:
        message = f"Invalid value {text} for configuration {key}: Not a number of type INT"
        raise ConfigError([Problem(key, message)]) from None


def tls_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """Settings without their prefix `schema.registry.`; raises ConfigError."""
    trusted = trusted_certificates(settings, _prefixed)
    own = identity(settings, _prefixed)
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
            key = _prefixed("ssl.keystore.location")
            message = f"the certificate and key of {key} do not do ({error.reason}); make the key store anew"
            raise ConfigError([Problem(key, message)]) from None
    return context


def _prefixed(key: str) -> str:
    return f"schema.registry.{key}"
