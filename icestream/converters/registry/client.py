"""Asks a Schema Registry for schemas and registers them; the converters' way to it.

Several addresses are tried in turn. A registry that does not answer is an error of the whole batch, which
is tried again; an id that it does not know is an error of the records that name it (`UnknownSchema`). Why not
the client that comes with confluent-kafka: docs/decisions/022-registry-client.md.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from urllib.parse import quote

from icestream.api.errors import FatalError, SourceUnavailable
from icestream.converters.registry.access import Access, tls_context

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
_CONTENT: Final = "application/vnd.schemaregistry.v1+json"
_TRY_AGAIN: Final = frozenset((408, 425, 429, 500, 502, 503, 504))
_REFUSED: Final = frozenset((401, 403))
_ERRORS: Final[Mapping[int, str]] = {
    409: "Incompatible schema",
    40401: "Subject not found",
    40402: "Version not found",
    40403: "Schema not found",
    42201: "Invalid schema",
    42202: "Invalid version",
}
_FORGET_S: Final = 60.0
"""How long an unknown id is not asked for again: it may be registered later."""
_MANY: Final = 10_000


class UnknownSchema(Exception):
    """The registry does not have it, or refuses it; says why."""


class UnusableSchema(Exception):
    """No record of the schema can be converted; says why."""


@dataclass(frozen=True)
class Reference:
    """A schema that another one names; `name` is what it is called there."""

    name: str
    text: str


@dataclass(frozen=True)
class RegisteredSchema:
    id: int
    kind: str
    """AVRO, PROTOBUF or JSON."""
    text: str
    references: tuple[Reference, ...] = ()
    """All that it needs, directly or not; one that others need comes before them."""


class Registry(Protocol):
    """What converters ask of a `RegistryClient`."""

    def by_id(self, schema_id: int) -> RegisteredSchema: ...

    def latest(self, subject: str) -> RegisteredSchema: ...

    def register(self, subject: str, kind: str, text: str) -> int: ...

    def look_up(self, subject: str, kind: str, text: str) -> int: ...


@dataclass
class RegistryClient:
    access: Access
    _schemas: dict[int, RegisteredSchema] = field(default_factory=dict)
    _unknown: dict[int, tuple[float, str]] = field(default_factory=dict)
    _ids: dict[tuple[str, str], int] = field(default_factory=dict)

    @cached_property
    def _http(self) -> httpx.Client:
        import httpx

        limits = httpx.Timeout(self.access.read_s, connect=self.access.connect_s)
        return httpx.Client(timeout=limits, verify=tls_context(self.access.ssl))

    def close(self) -> None:
        self._http.close()

    def reach(self) -> None:
        """Raises SourceUnavailable or FatalError unless a registry answers us."""
        with suppress(UnknownSchema):  # an answer, too: not every registry tells its config
            self._ask("GET", "/config")

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """Raises UnknownSchema, or SourceUnavailable for the whole batch."""
        if schema_id in self._schemas:
            return self._schemas[schema_id]
        since, reason = self._unknown.get(schema_id, (0.0, ""))
        if reason and time.monotonic() - since < _FORGET_S:
            raise UnknownSchema(reason)
        try:
            made = self._registered(schema_id, self._ask("GET", f"/schemas/ids/{schema_id}"))
        except UnknownSchema as error:
            self._note_unknown(schema_id, str(error))
            raise
        self._schemas[schema_id] = made
        return made

    def _note_unknown(self, schema_id: int, reason: str) -> None:
        if len(self._unknown) >= _MANY:
            self._unknown.clear()
        self._unknown[schema_id] = time.monotonic(), reason

    def latest(self, subject: str) -> RegisteredSchema:
        found = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/latest")
        return self._registered(_told(found, "id", int), found)

    def register(self, subject: str, kind: str, text: str) -> int:
        """The id of a schema of a subject, new or not."""
        return self._id_of("/versions", subject, kind, text)

    def look_up(self, subject: str, kind: str, text: str) -> int:
        """The id of a schema that the subject has already."""
        return self._id_of("", subject, kind, text)

    def _id_of(self, action: str, subject: str, kind: str, text: str) -> int:
        key = subject, text
        if key not in self._ids:
            body = {"schema": text} | ({} if kind == "AVRO" else {"schemaType": kind})
            answer = self._ask("POST", f"/subjects/{quote(subject, safe='')}{action}", body)
            self._ids[key] = _told(answer, "id", int)
        return self._ids[key]

    def _registered(self, schema_id: int, found: Mapping[str, Any]) -> RegisteredSchema:
        references: dict[str, Reference] = {}
        self._resolve(found.get("references") or (), references, ())
        kind = str(found.get("schemaType") or "AVRO")
        return RegisteredSchema(schema_id, kind, _told(found, "schema", str), tuple(references.values()))

    def _resolve(self, wanted: Sequence[object], into: dict[str, Reference], above: tuple[str, ...]) -> None:
        for one in wanted:
            name = _told(one, "name", str)
            if name in into:
                continue
            if name in above:
                raise UnknownSchema(f"the schema reference {name} leads to itself")
            subject, version = quote(_told(one, "subject", str), safe=""), _told(one, "version", int)
            found = self._ask("GET", f"/subjects/{subject}/versions/{version}")
            self._resolve(found.get("references") or (), into, (*above, name))
            into[name] = Reference(name, _told(found, "schema", str))

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        troubles = []
        for url in self.access.urls:
            try:
                return self._ask_one(url, method, path, body)
            except SourceUnavailable as error:
                troubles.append(str(error))
        raise SourceUnavailable("; ".join(troubles))

    def _ask_one(self, url: str, method: str, path: str, body: Mapping[str, Any] | None) -> Mapping[str, Any]:
        import httpx

        headers = {"Accept": f"{_CONTENT}, application/json", "Content-Type": _CONTENT}
        if authorization := self.access.by_url.get(url) or self.access.authorization:
            headers["Authorization"] = authorization
        try:
            answer = self._http.request(method, f"{url}{path}", headers=headers, json=body)
        except httpx.HTTPError as error:
            trouble = str(error) or type(error).__name__
            raise SourceUnavailable(f"the Schema Registry at {url} does not answer: {trouble}") from None
        if answer.status_code in _REFUSED:
            raise FatalError(
                f"the Schema Registry at {url} refuses the credentials (HTTP {answer.status_code});"
                " check basic.auth.user.info or bearer.auth.token of the converter"
            )
        if answer.status_code in _TRY_AGAIN:
            raise SourceUnavailable(f"the Schema Registry at {url} answers HTTP {answer.status_code}")
        return _content(answer, url)


def _content(answer: httpx.Response, url: str) -> Mapping[str, Any]:
    try:
        content = answer.json()
    except ValueError:
        content = None
    if answer.is_success and isinstance(content, dict):
        return content
    if isinstance(content, dict) and "message" in content:
        # Not its words: what answers may be any host that the worker reaches.
        code = content.get("error_code")
        if isinstance(code, int) and code in _ERRORS:
            raise UnknownSchema(f"{_ERRORS[code]}; error code: {code}")
        raise UnknownSchema(f"the Schema Registry at {url} refuses the request (HTTP {answer.status_code})")
    raise SourceUnavailable(
        f"what answers at {url} is no Schema Registry (HTTP {answer.status_code}); check schema.registry.url"
    )


def _told(answer: object, name: str, kind: type[T]) -> T:
    value = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(value, kind):
        raise SourceUnavailable(f"the Schema Registry answers without '{name}'; check schema.registry.url")
    return value
