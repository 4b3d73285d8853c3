"""Names of tables from `table.name.format` and topics. The config names the format, records only topics; what
a name may be made of is a list. Used by `sink` and, in tasks, by `writer`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from icestream.connectors.jdbc.dialects.base import TableId

_PART: Final = re.compile(r'"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|([^".`]+)')
_TOPIC: Final = "${topic}"


@dataclass(frozen=True)
class TableNames:
    """How topics name tables. Plain data: it crosses process boundaries."""

    format: str
    by_topic: Mapping[str, str] = field(default_factory=dict)
    """Tables of some topics, whatever the format."""
    normalizes: bool = False
    """Whether a dot and other signs of a topic become `_`, so that it is one name."""

    @property
    def is_fixed(self) -> bool:
        return _TOPIC not in self.format

    def of(self, topic: str) -> tuple[str, str | None]:
        """The table of a topic; or why there is none."""
        name = self.by_topic.get(topic)
        if name is None:
            said = re.sub(r"[^A-Za-z0-9_]", "_", topic) if self.normalizes else topic
            name = self.format.replace(_TOPIC, said)
        return name, name_problem(name)


def name_problem(name: str) -> str | None:
    """Why a table cannot have this name; None if it can."""
    try:
        table_id(name)
    except ValueError as error:
        return str(error)
    return None


def table_id(name: str) -> TableId:
    """A name of up to three parts, with a dot between them; parts may be quoted. ValueError."""
    parts: list[str] = []
    at = 0
    while at < len(name):
        match = _PART.match(name, at)
        if match is None:
            break
        double, back, bare = match.groups()
        parts.append(double.replace('""', '"') if double else back.replace("``", "`") if back else bare)
        at = match.end()
        if at < len(name):
            if name[at] != ".":
                break
            at += 1
            if at == len(name):
                at = -1
                break
    if at != len(name) or not parts or len(parts) > 3 or any("\0" in part for part in parts):
        raise ValueError(
            f"'{name[:60]}' is no name of a table, such as table, schema.table or db.schema.table"
        )
    return TableId(*([""] * (3 - len(parts))), *parts)
