"""What in a config of the S3 sink does not go together, and what has no effect. Called by `plugin`."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from icestream.api.config import Config
from icestream.api.errors import Problem
from icestream.connectors.s3 import clouds
from icestream.connectors.s3.keys import (
    DEFAULT_PROVIDERS,
    FORMATS,
    PARTITIONERS,
    PROVIDER,
    ROLE_PROVIDER,
    WITHOUT_EFFECT,
)

_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_STRINGS: Final = "org.apache.kafka.connect.storage.StringConverter"


def problems(config: Config) -> list[Problem]:
    found = [*_address_problems(config), *_login_problems(config), *_rotation_problems(config)]
    if _is_on(config, "s3.wan.mode") and _is_on(config, "s3.path.style.access.enabled", default=True):
        message = "s3.wan.mode does not go with s3.path.style.access.enabled; switch one of them off"
        found += [Problem(key, message) for key in ("s3.wan.mode", "s3.path.style.access.enabled")]
    if config.get("s3.sse.customer.key") and config.get("s3.ssea.name", "") not in ("", "AES256"):
        found.append(Problem("s3.sse.customer.key", "s3.sse.customer.key needs s3.ssea.name=AES256"))
    return found


_SCHEMES: Final = ("http", "https", "file", *clouds.SCHEMES)


def _is_on(config: Config, key: str, *, default: bool = False) -> bool:
    return config.get(key, str(default)).strip().lower() == "true"


def _address_problems(config: Config) -> list[Problem]:
    found: list[Problem] = []
    for key, schemes in (("store.url", _SCHEMES), ("s3.proxy.url", ("http", "https"))):
        given = config.get(key, "").strip()
        if not given:
            continue
        if key == "store.url" and clouds.is_cloud(config):
            found += clouds.problems(config)
            continue
        address = given if "://" in given or given.startswith("file:") else f"https://{given}"
        try:
            parts = urlsplit(address)
        except ValueError:
            found.append(Problem(key, f"'{key}' is no address; write it as http://host:port"))
            continue
        if parts.scheme.lower() not in schemes or (parts.scheme != "file" and not parts.hostname):
            found.append(Problem(key, f"'{key}' is no address that begins with {' or '.join(schemes)}"))
        elif parts.username or parts.password:
            found.append(Problem(key, f"'{key}' has a login in it; use the keys that are for logins"))
        elif parts.scheme == "file" and (
            parts.netloc or not parts.path.startswith("/") or parts.query or parts.fragment
        ):
            found.append(Problem(key, f"'{key}' must be an absolute path, such as file:///var/lake"))
    return found


def _login_problems(config: Config) -> list[Problem]:
    found = []
    there, missing = "aws.access.key.id", "aws.secret.access.key"
    if bool(config.get(there)) != bool(config.get(missing)):
        if config.get(missing):
            there, missing = missing, there
        found.append(Problem(missing, f"'{missing}' is missing, and '{there}' is set; set both, or neither"))
    provider = config.get(f"{PROVIDER}class", "").strip()
    if provider == ROLE_PROVIDER and not config.get(f"{PROVIDER}sts.role.arn"):
        found.append(
            Problem(f"{PROVIDER}sts.role.arn", f"'{PROVIDER}sts.role.arn' is missing: the role to be")
        )
    if provider and provider != ROLE_PROVIDER and provider not in DEFAULT_PROVIDERS:
        known = ", ".join((*sorted(DEFAULT_PROVIDERS), ROLE_PROVIDER))
        found.append(
            Problem(f"{PROVIDER}class", f"'{provider}' is none of the providers known here: {known}")
        )
    return found


def _rotation_problems(config: Config) -> list[Problem]:
    schedule = config.get("rotate.schedule.interval.ms", "-1").strip()
    if schedule not in ("", "-1") and not config.get("timezone", "").strip():
        return [Problem("timezone", "'rotate.schedule.interval.ms' needs 'timezone', such as UTC")]
    return []


def warnings(config: Config) -> list[str]:
    found = [f"'{key}' has no effect: {reason}" for key, reason in WITHOUT_EFFECT.items() if config.get(key)]
    other = "it is for another store than that of 'store.url'"
    found += [f"'{key}' has no effect: {other}" for key in clouds.without_effect(config)]
    by_time = config.get("partitioner.class", "").strip() in PARTITIONERS[2:]
    if config.get("rotate.interval.ms", "-1").strip() not in ("", "-1") and not by_time:
        found.append(
            "'rotate.interval.ms' has no effect with a partitioner that is not by time; write "
            "rotate.schedule.interval.ms and timezone instead, or take TimeBasedPartitioner"
        )
    converter = config.get("value.converter", "").strip()
    has_schemas = config.get("value.converter.schemas.enable", "true").strip().lower() != "false"
    if converter == _JSON and not has_schemas and config.get("format.class", "").strip() in FORMATS[1:3]:
        found.append(
            "AvroFormat and ParquetFormat need values with a schema, which "
            "value.converter.schemas.enable=false does not make: such records are refused; take a converter "
            "with schemas, or JsonFormat"
        )
    is_text = config.get("value.converter", "").strip() == _STRINGS
    if is_text and config.get("format.class", "").strip() == FORMATS[0]:
        found.append(
            "StringConverter with JsonFormat writes each text in quotation marks; for text as it is take "
            "ByteArrayConverter with ByteArrayFormat"
        )
    return found
