"""What a config says of one table, and under which key, so that errors can name it. Used by the settings of
single tables, and where missing tables are created."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Given:
    """A value of a config, and its key."""

    key: str
    value: str

    def __bool__(self) -> bool:
        return bool(self.value)


def names_in(given: Given) -> list[str]:
    """A list of columns."""
    return [name.strip() for name in given.value.split(",") if name.strip()]
