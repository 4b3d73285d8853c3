"""Changed schemas, kept; shared by transforms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from icestream.records.schema import ConnectSchema

_MOST_SCHEMAS = 64
T = TypeVar("T")


@dataclass
class SchemaCache(Generic[T]):
    """What was made of each schema, as groups of the same schema come again and again."""

    _made: dict[ConnectSchema, T] = field(default_factory=dict)
    _last: tuple[ConnectSchema, T] | None = None

    def get(self, schema: ConnectSchema, make: Callable[[ConnectSchema], T]) -> T:
        if self._last is not None and self._last[0] is schema:
            return self._last[1]
        if schema not in self._made:
            if len(self._made) >= _MOST_SCHEMAS:
                self._made.clear()
            self._made[schema] = make(schema)
        self._last = (schema, self._made[schema])
        return self._made[schema]
