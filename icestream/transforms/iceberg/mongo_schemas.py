"""Schemas of MongoDB's documents, inferred from their values, for MongoDebeziumTransform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from icestream.records.schema import (
    OPTIONAL_BYTES,
    OPTIONAL_STRING,
    ConnectSchema,
    Kind,
    array,
    struct,
    timestamp,
)
from icestream.transforms.failures import SCHEMA_BUILDER_EXCEPTION, GroupFailed
from icestream.transforms.iceberg.extended_json import (
    INVALID_OPERATION,
    Document,
    Other,
    ScopedJavaScript,
    kind,
)

_MOST_SHAPES: Final = 1000
_RUNTIME_EXCEPTION: Final = "java.lang.RuntimeException"
_ADVICE: Final = "Check option 'struct' of parameter 'array.encoding'"
_SCALARS: Final[Mapping[str, ConnectSchema]] = {
    **dict.fromkeys(("NULL", "STRING", "JAVASCRIPT", "OBJECT_ID", "DECIMAL128"), OPTIONAL_STRING),
    "DOUBLE": ConnectSchema(Kind.FLOAT64, optional=True),
    "BINARY": OPTIONAL_BYTES,
    "INT32": ConnectSchema(Kind.INT32, optional=True),
    "INT64": ConnectSchema(Kind.INT64, optional=True),
    **dict.fromkeys(("DATE_TIME", "TIMESTAMP"), timestamp(optional=True)),
    "BOOLEAN": ConnectSchema(Kind.BOOLEAN, optional=True),
}
_REGULAR_EXPRESSION: Final = struct(
    ("regex", OPTIONAL_STRING),
    ("options", OPTIONAL_STRING),
    name="io.debezium.mongodb.regex",
    optional=True,
)


def elements(values: Sequence[Any]) -> dict[str, Any]:
    """An array as a document: `_0`, `_1` and so on."""
    return {f"_{position}": value for position, value in enumerate(values)}


def require(value: Any, wanted: str) -> Any:
    if kind(value) != wanted:
        reason = f"Value expected to be of type {wanted} is of unexpected type {kind(value)}"
        raise GroupFailed(reason, INVALID_OPERATION)
    return value


def first(values: Sequence[Any]) -> Any:
    if not values:
        raise GroupFailed("Index 0 out of bounds for length 0", "java.lang.IndexOutOfBoundsException")
    return values[0]


@dataclass(frozen=True)
class Schemas:
    """All methods raise GroupFailed for documents that have no schema."""

    arrays_as_documents: bool
    _known: dict[tuple[Any, bool], ConnectSchema] = field(default_factory=dict, compare=False)

    def at_top(self, document: Document, *, optional: bool = True) -> ConnectSchema:
        """The same object for all documents of one shape."""
        shape = (self._shape(document), optional)
        if shape not in self._known:
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            self._known[shape] = self.of(document, optional=optional)
        return self._known[shape]

    def _shape(self, value: Any) -> Any:
        """All that the schema depends on."""
        found = type(value)
        if found is dict:
            return ("{", *((key, self._shape(item)) for key, item in value.items()))
        if found is list:
            items = map(self._shape, value)
            return ("[", *(items if self.arrays_as_documents else dict.fromkeys(items)))
        if found is ScopedJavaScript:
            return ("js", self._shape(value.scope))
        return value.kind if found is Other else found

    def of(self, document: Document, name: str | None = None, *, optional: bool = True) -> ConnectSchema:
        fields = []
        for key, value in document.items():
            schema = self._field(key, value, name)
            if schema is None:
                continue
            if not key:
                raise GroupFailed("fieldName cannot be null.", SCHEMA_BUILDER_EXCEPTION)
            fields.append((key, schema))
        return struct(*fields, name=name, optional=optional)

    def _field(self, key: str, value: Any, parent: str | None) -> ConnectSchema | None:
        """None: such values are left out."""
        found = kind(value)
        if found in _SCALARS:
            return _SCALARS[found]
        name = _nested(parent, key)
        match found:
            case "REGULAR_EXPRESSION":
                return _REGULAR_EXPRESSION
            case "JAVASCRIPT_WITH_SCOPE":
                scope = self.of(value.scope, f"{name}.scope")
                return struct(("code", OPTIONAL_STRING), ("scope", scope), name=name)
            case "DOCUMENT":
                return self.of(value, name)
            case "ARRAY" if self.arrays_as_documents:
                return self.of(elements(value), name)
            case "ARRAY":
                return self._array(key, value, parent)
        return None

    def _array(self, key: str, values: list[Any], parent: str | None) -> ConnectSchema:
        if not values:
            return array(OPTIONAL_STRING, optional=True)
        _check_alike(key, values, parent)
        return array(self._element(key, values, parent), optional=True)

    def _element(self, key: str, values: list[Any], parent: str | None) -> ConnectSchema:
        found = kind(first(values))
        if found in _SCALARS:
            return _SCALARS[found]
        if found == "DOCUMENT":
            return self._documents(values, _nested(parent, key))
        if found == "ARRAY":
            return array(self._element(key, values[0], parent), optional=True)
        raise GroupFailed(
            f"The value type '{found} is not yet supported inside for a subSchema.",
            "java.lang.IllegalArgumentException",
        )

    def _documents(self, documents: Sequence[Document], name: str) -> ConnectSchema:
        """The first document that has a field says what it is; empty documents and arrays say so only if
        there is nothing else at all."""
        return (
            self._merged(documents, name, skip_empty=True)
            or self._merged(documents, name, skip_empty=False)
            or struct(name=name, optional=True)
        )

    def _merged(self, documents: Sequence[Document], name: str, *, skip_empty: bool) -> ConnectSchema | None:
        typical: Document = {}
        kinds: dict[str, str] = {}
        for document in documents:
            for key, value in document.items():
                if skip_empty and kind(value) in ("DOCUMENT", "ARRAY") and not value:
                    continue
                typical.setdefault(key, value)
                _check_same(key, value, name, kinds)
        merged = self.of(typical, name)
        return merged if merged.fields else None


def _nested(parent: str | None, key: str) -> str:
    return f"{'null' if parent is None else parent}.{key}"


def _check_alike(key: str, values: list[Any], parent: str | None) -> None:
    found = kind(first(values))
    if found == "DOCUMENT":
        kinds: dict[str, str] = {}
        for value in values:
            for inner, item in require(value, "DOCUMENT").items():
                _check_same(inner, item, parent, kinds)
    elif found == "ARRAY":
        for value in values:
            first(require(value, "ARRAY"))
            _check_alike(key, value, parent)
    elif any(kind(value) != found for value in values):
        raise GroupFailed(
            f"Field {key} of schema {_shown(parent)} is not a homogenous array.\n{_ADVICE}",
            _RUNTIME_EXCEPTION,
        )


def _check_same(key: str, value: Any, name: str | None, kinds: dict[str, str]) -> None:
    """A field of several documents; nulls go with everything."""
    found = kind(value)
    before = kinds.setdefault(key, found)
    if before == "NULL":
        kinds[key] = found
    elif found not in (before, "NULL"):
        where = f"Field {key} of schema {_shown(name)}"
        reason = f"{where} is not the same type for all documents in the array.\n{_ADVICE}"
        raise GroupFailed(reason, _RUNTIME_EXCEPTION)


def _shown(name: str | None) -> str:
    return "null" if name is None else name
