"""Whether a worker sends traces of its batches, and where. Everything else is OpenTelemetry's own: headers,
time limits, certificates, sampling, the name of the service, by its `OTEL_*` variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from icestream.api.config import Config, ConfigDef, Setting, Type

ENDPOINT: Final = "icestream.traces.endpoint"
_FOR_TRACES: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_FOR_ALL: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PATH: Final = "/v1/traces"


def endpoint_problem(address: str) -> str | None:
    """As a setting's check."""
    if not address:
        return None
    try:
        parts = urlsplit(address)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        return "is not http://host:port or https://host:port, such as http://localhost:4318"
    if parts.username is not None:
        return "has a login in it, which others would see; put it into OTEL_EXPORTER_OTLP_HEADERS"
    return None


TRACES: Final = ConfigDef(
    (
        Setting(
            ENDPOINT,
            Type.STRING,
            "",
            "Where an OpenTelemetry collector takes OTLP, such as http://localhost:4318; each batch is "
            "a trace. Needs the extra 'traces'. OTEL_* variables have the rest.",
            importance="LOW",
            check=endpoint_problem,
        ),
    )
)


@dataclass(frozen=True)
class Wanted:
    """Where traces go."""

    address: str
    is_set: bool
    """By the worker's config: whoever wrote it is told if it cannot be. A variable may be for others."""


def wanted_traces(worker: Config, environ: Mapping[str, str]) -> Wanted | None:
    """None: nobody asked for traces, or somebody switched them off."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    if address := worker.get(ENDPOINT, "").strip():
        return Wanted(_with_path(address), is_set=True)
    if environ.get("OTEL_TRACES_EXPORTER", "otlp").strip() not in ("", "otlp"):
        return None
    if any("grpc" in environ.get(name, "") for name in _PROTOCOLS):
        return None
    address = environ.get(_FOR_TRACES, "").strip()
    if not address and (shared := environ.get(_FOR_ALL, "").strip()):
        address = shared.rstrip("/") + _PATH
    return Wanted(address, is_set=False) if address and endpoint_problem(address) is None else None


def _with_path(address: str) -> str:
    """A collector's address without a path means its usual one."""
    return address if urlsplit(address).path.strip("/") else address.rstrip("/") + _PATH
