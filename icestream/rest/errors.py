"""One table: our exceptions to HTTP codes, with Kafka Connect's `{"error_code", "message"}` as the body."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from icestream.api.errors import (
    AlreadyExistsError,
    BadFilter,
    BadOffsets,
    ConfigChanged,
    ConfigError,
    IcestreamError,
    NotFoundError,
    NotReadyError,
    Problem,
    UnknownConnectorClass,
)
from icestream.traces import shown

_LOG = logging.getLogger(__name__)


class BadRequest(Exception):
    """The request contradicts itself, such as two names for one connector."""


class Forbidden(Exception):
    """The worker's config does not allow this."""


class MalformedBody(Exception):
    """The body cannot be read; Kafka Connect answers 500 here, and so do we."""


CODES: Final[Sequence[tuple[type[Exception], int]]] = (
    (ConfigError, 400),
    (BadRequest, 400),
    (BadOffsets, 400),
    (BadFilter, 400),
    (Forbidden, 403),
    (NotFoundError, 404),
    (AlreadyExistsError, 409),
    (ConfigChanged, 409),
    (NotReadyError, 409),
    (MalformedBody, 500),
)


def error_from(error: Exception, path: str) -> tuple[int, dict[str, Any]]:
    """The code and the body for an exception; one that is not in the table is 500, and logged."""
    for kind, code in CODES:
        if isinstance(error, kind):
            return code, error_body(code, _message(error))
    if isinstance(error, IcestreamError):
        _LOG.warning("%s could not be answered: %s", path, error)
    else:
        _LOG.error("uncaught exception in REST call to %s", path, exc_info=error)
    return 500, error_body(500, shown(error))


def error_body(code: int, message: str | None) -> dict[str, Any]:
    return {"error_code": code, "message": message}


def http_error_body(code: int) -> dict[str, Any]:
    """For what never reaches a handler: no such path, no such verb, no such media type."""
    return error_body(code, f"HTTP {code} {HTTPStatus(code).phrase}")


def invalid_config_message(problems: Sequence[Problem]) -> str:
    listed = "".join(f"\n{problem.message}" for problem in problems)
    return (
        f"Connector configuration is invalid and contains the following {len(problems)} error(s):{listed}"
        "\nYou can also find the above list of errors at the endpoint "
        "`/connector-plugins/{connectorType}/config/validate`"
    )


def _message(error: Exception) -> str:
    if isinstance(error, ConfigError) and not isinstance(error, UnknownConnectorClass):
        return invalid_config_message(error.problems)
    return str(error)
