"""How workers reach Kafka: `bootstrapServers`, `tls` and `authentication` as worker properties.

Secrets never become values here. They are mounted, and properties point to the files by Kafka's
DirectoryConfigProvider, which the worker resolves when it starts.
"""

from __future__ import annotations

import re
from typing import Final

from icestream.operator.resources.cluster_spec import TrustedCertificates
from icestream.operator.resources.draft import CLIENTS, UNSUPPORTED, Draft, object_name
from icestream.operator.resources.fields import Fields, property_text
from icestream.operator.resources.invalid import InvalidResource

CERTIFICATES: Final = "/opt/kafka/connect-certs"
PASSWORDS: Final = "/opt/kafka/connect-password"

_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_LOGINS: Final = {
    "plain": ("PLAIN", _PLAIN),
    "scram-sha-256": ("SCRAM-SHA-256", _SCRAM),
    "scram-sha-512": ("SCRAM-SHA-512", _SCRAM),
}
_TYPES: Final = ("tls", *_LOGINS, "custom", "oauth")
_ALLOWED_IN_CUSTOM: Final = ("sasl.", "ssl.keystore.")
_FILE: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_PATTERN: Final = re.compile(r"[-._a-zA-Z0-9*?\[\]!]{1,253}")
_SERVERS: Final = re.compile(r"[^\s,]+(\s*,\s*[^\s,]+)*")


def read_connection(fields: Fields, draft: Draft) -> None:
    """From the map that has `bootstrapServers`, `tls` and `authentication`."""
    servers = fields.required("bootstrapServers")
    if not _SERVERS.fullmatch(servers):
        raise InvalidResource(
            f"{fields.at('bootstrapServers')} is no list of addresses; write host:port,host:port"
        )
    draft.properties["bootstrap.servers"] = servers
    has_tls = "tls" in fields
    if has_tls:
        _read_tls(fields.map("tls"), draft)
    has_sasl = _read_authentication(fields, draft, has_tls=has_tls)
    protocol = ("SASL_SSL" if has_tls else "SASL_PLAINTEXT") if has_sasl else ("SSL" if has_tls else "")
    if protocol:
        _for_all_clients(draft, {"security.protocol": protocol})


def placeholder(folder: str, file: str) -> str:
    return f"${{strimzidir:{folder}:{file}}}"


def _read_tls(tls: Fields, draft: Draft) -> None:
    draft.has_no_effect(tls, ("trustedCertificates",))
    for one in tls.maps("trustedCertificates"):
        secret = draft.secret(one, "secretName")
        certificate, pattern = one.text("certificate"), one.text("pattern")
        if bool(certificate) == bool(pattern):
            raise InvalidResource(f"{one.path} needs either 'certificate' or 'pattern'; set one of the two")
        if not (_FILE.fullmatch(certificate) if certificate else _PATTERN.fullmatch(pattern)):
            raise InvalidResource(f"{one.path} names no key that a Secret can have; mend it")
        draft.trusted.append(TrustedCertificates(secret, certificate, pattern))
        draft.secret_mounts[f"{CERTIFICATES}/{secret}"] = secret


def _read_authentication(fields: Fields, draft: Draft, *, has_tls: bool) -> bool:
    """Whether it is a login by SASL."""
    if "authentication" not in fields:
        return False
    found = fields.map("authentication")
    kind = found.choice("type", _TYPES)
    if kind == "oauth":
        raise InvalidResource(
            f"{found.at('type')} is 'oauth', which is not supported; take 'custom' with sasl: true and the "
            "properties of sasl.mechanism=OAUTHBEARER in its config"
        )
    if kind == "custom":
        return _read_custom(found, draft)
    if kind == "tls":
        if not has_tls:
            draft.warn(
                UNSUPPORTED,
                f"{found.path} is of type tls, but {fields.at('tls')} is not set; it has no effect",
            )
        _read_certificate(found, draft)
        return False
    _read_login(found, kind, draft)
    return True


def _read_custom(found: Fields, draft: Draft) -> bool:
    given = found.map("config")
    for key, value in given.values.items():
        if key.startswith(_ALLOWED_IN_CUSTOM):
            _for_all_clients(draft, {key: property_text(value, given.at(key))})
        else:
            draft.warn(
                "ForbiddenConfig",
                f"{given.at(key)} is left out: only keys that begin with "
                f"{' or '.join(_ALLOWED_IN_CUSTOM)} belong there",
            )
    draft.has_no_effect(found, ("type", "sasl", "config"))
    return found.flag("sasl")


def _read_certificate(found: Fields, draft: Draft) -> None:
    pair = found.map("certificateAndKey")
    secret = draft.secret(pair, "secretName")
    folder = f"{CERTIFICATES}/{secret}"
    draft.secret_mounts[folder] = secret
    _for_all_clients(
        draft,
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": placeholder(folder, _file(pair, "certificate")),
            "ssl.keystore.key": placeholder(folder, _file(pair, "key")),
        },
    )
    draft.has_no_effect(found, ("type", "certificateAndKey"))


def _read_login(found: Fields, kind: str, draft: Draft) -> None:
    mechanism, module = _LOGINS[kind]
    held = found.map("passwordSecret")
    secret = draft.secret(held, "secretName")
    folder = f"{PASSWORDS}/{secret}"
    draft.secret_mounts[folder] = secret
    user = found.required("username").replace("\\", "\\\\").replace('"', '\\"')
    if "${" in user or "\n" in user or "\r" in user:
        raise InvalidResource(f"{found.at('username')} has a line break or a placeholder; write a plain name")
    password = placeholder(folder, _file(held, "password"))
    _for_all_clients(
        draft,
        {
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{module} required username="{user}" password="{password}";',
        },
    )
    draft.has_no_effect(found, ("type", "username", "passwordSecret"))


def _file(fields: Fields, key: str) -> str:
    name = fields.required(key)
    if not _FILE.fullmatch(name):
        raise InvalidResource(f"{fields.at(key)} is no key that a Secret can have; mend it")
    return name


def _for_all_clients(draft: Draft, properties: dict[str, str]) -> None:
    for client in CLIENTS:
        draft.properties |= {f"{client}{key}": value for key, value in properties.items()}


__all__ = ["CERTIFICATES", "PASSWORDS", "object_name", "placeholder", "read_connection"]
