"""The variables of the stack's `.env`, with their defaults. Read by both back ends and by the steps."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from icestream.api.errors import PreconditionError

_PORT: Final = re.compile(r"[0-9]{1,5}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_LINE: Final = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")


def _variable(name: str, default: Any) -> Any:
    return field(default=default, metadata={"variable": name}, repr="PASSWORD" not in name)


@dataclass(frozen=True)
class Settings:
    """One field for each variable; images and the licence matter to containers only."""

    minio_license: str = _variable("MINIO_LICENSE", "")
    source_image: str = _variable("MINIO_SOURCE_IMAGE", "praveenminio/eos:log")
    destination_image: str = _variable(
        "MINIO_DEST_IMAGE", "quay.io/minio/aistor/minio:EDGE.2025-12-13T08-46-12Z"
    )
    user: str = _variable("MINIO_ROOT_USER", "minioadmin")
    password: str = _variable("MINIO_ROOT_PASSWORD", "minioadmin")
    kafka_image: str = _variable("KAFKA_IMAGE", "confluentinc/cp-kafka:7.5.0")
    worker_image: str = _variable("KAFKA_CONNECT_IMAGE", "icestream:latest")
    trino_image: str = _variable("TRINO_IMAGE", "trinodb/trino:477")
    warehouse: str = _variable("WAREHOUSE_NAME", "kafkawarehouse")
    namespace: str = _variable("NAMESPACE_NAME", "streaming")
    api_topic: str = _variable("API_LOGS_TOPIC", "apilogs")
    error_topic: str = _variable("ERROR_LOGS_TOPIC", "errorlogs")
    audit_topic: str = _variable("AUDIT_LOGS_TOPIC", "auditlogs")
    source_port: int = _variable("SOURCE_API_PORT", 9000)
    source_console_port: int = _variable("SOURCE_CONSOLE_PORT", 9001)
    destination_port: int = _variable("DEST_API_PORT", 9010)
    destination_console_port: int = _variable("DEST_CONSOLE_PORT", 9011)
    kafka_port: int = _variable("KAFKA_EXTERNAL_PORT", 9092)
    worker_port: int = _variable("KAFKA_CONNECT_PORT", 8083)
    trino_port: int = _variable("TRINO_PORT", 9999)


_NAMES: Final = ("warehouse", "namespace", "api_topic", "error_topic", "audit_topic")


def variables() -> dict[str, str]:
    """Every variable with its default, in the order of the file."""
    return {one.metadata["variable"]: str(one.default) for one in fields(Settings)}


def settings_from(environ: Mapping[str, str] = os.environ, file: Path | None = None) -> Settings:
    """Defaults, then the `.env` file, then the environment, as Docker Compose does; empty means absent."""
    given = {
        **(read_env(file) if file else {}),
        **{key: environ[key] for key in variables() if key in environ},
    }
    chosen: dict[str, Any] = {}
    for one in fields(Settings):
        variable = one.metadata["variable"]
        if text := given.get(variable, "").strip():
            chosen[one.name] = _port(variable, text) if isinstance(one.default, int) else text
            if one.name in _NAMES and not _NAME.fullmatch(text):
                raise PreconditionError(
                    f"{variable} is '{text[:40]}', which is no name; use letters, digits, '.', '_' and '-'"
                )
    return Settings(**chosen)


def read_env(file: Path) -> dict[str, str]:
    """The `KEY=value` lines of a file; values may be in quotes. Other lines are an error, not skipped."""
    try:
        lines = file.read_text().splitlines()
    except OSError as error:
        raise PreconditionError(f"{file} cannot be read ({error.strerror}); check the path") from error
    found = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if not match:
            raise PreconditionError(f"line {number} of {file} is not of the form KEY=value; correct it")
        found[match[1]] = _unquoted(match[2])
    return found


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] in "'\"" and text[0] == text[-1]:
        return text[1:-1]
    return text.partition(" #")[0].rstrip()


def _port(variable: str, text: str) -> int:
    if not _PORT.fullmatch(text) or not 0 < int(text) < 65536:
        raise PreconditionError(f"{variable} is '{text[:20]}', which is no port; use 1 to 65535")
    return int(text)
