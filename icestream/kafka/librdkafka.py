"""What librdkafka is told about a connection, and what it says about a setting. For `java_settings.py`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from icestream.kafka.connection import Connection
from icestream.kafka.logins import OAuth

JAVAS_PARTITIONER: Final = "murmur2_random"
ANY_PARTITION: Final = "random"
UNKNOWN: Final = "No such configuration property"
_BEYOND_ALL_KEYS: Final = "icestream.end"


@functools.lru_cache(maxsize=256)
def complaint(key: str, value: str) -> str | None:
    """What librdkafka says of a setting, without making a client: it stops at the key after it."""
    try:
        AdminClient({key: value, _BEYOND_ALL_KEYS: ""})
    except KafkaException as error:
        told = str(error.args[0].str()).strip()
        return None if _BEYOND_ALL_KEYS in told else told
    except (TypeError, ValueError) as error:
        return str(error)
    return None


def has_kerberos() -> bool:
    return complaint("builtin.features", "sasl_gssapi") is None


def connection_settings(facts: Connection, settings: Mapping[str, str]) -> dict[str, str]:
    """The connection in librdkafka's words; what `settings` say in those words already stays as it is."""
    out = {"bootstrap.servers": ",".join(facts.bootstrap_servers)}
    if facts.uses_tls or facts.uses_sasl:
        out["security.protocol"] = facts.protocol
    if facts.uses_tls:
        out |= _tls(facts, settings)
    if facts.uses_sasl and facts.mechanism:
        out |= {"sasl.mechanism": facts.mechanism, **_login(facts)}
    return out


def _tls(facts: Connection, settings: Mapping[str, str]) -> dict[str, str]:
    out = {"ssl.endpoint.identification.algorithm": "https" if facts.check_hostname else "none"}
    if facts.ca_pem and "ssl.ca.location" not in settings:
        out["ssl.ca.pem"] = facts.ca_pem
    if facts.cert_pem and facts.key_pem:
        if "ssl.certificate.location" not in settings:
            out["ssl.certificate.pem"] = facts.cert_pem
        if "ssl.key.location" not in settings:
            out["ssl.key.pem"] = facts.key_pem
        elif settings.get("ssl.key.password"):
            out["ssl.key.password"] = settings["ssl.key.password"]
    return out


def _login(facts: Connection) -> dict[str, str]:
    if facts.oauth:
        return _oauth(facts.oauth)
    if facts.kerberos:
        named = {
            "sasl.kerberos.service.name": facts.kerberos.service,
            "sasl.kerberos.principal": facts.kerberos.principal,
            "sasl.kerberos.keytab": facts.kerberos.keytab,
        }
        return {key: value for key, value in named.items() if value}
    return {"sasl.username": facts.username or "", "sasl.password": facts.password or ""}


def _oauth(login: OAuth) -> dict[str, str]:
    if login.token_endpoint is None:
        return {
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": f"principal={login.unsecured_principal}",
        }
    wanted = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": login.token_endpoint,
        "sasl.oauthbearer.client.id": login.client_id,
        "sasl.oauthbearer.client.secret": login.client_secret,
        "sasl.oauthbearer.scope": login.scope,
        "sasl.oauthbearer.extensions": ",".join(f"{key}={value}" for key, value in login.extensions.items()),
        "sasl.oauthbearer.grant.type": login.grant_type,
        "https.ca.pem": login.endpoint_ca_pem,
    }
    return {key: value for key, value in wanted.items() if value}
