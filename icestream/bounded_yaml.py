"""YAML as plain data, nested within a limit that is the same on every Python: PyYAML itself has none."""

from __future__ import annotations

from typing import Any, Final

import yaml

_MOST_LEVELS: Final = 50
"""More than any config or resource has."""


class BoundedLoader(yaml.SafeLoader):  # type: ignore[misc]
    _levels = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._levels += 1
        if self._levels > _MOST_LEVELS:
            raise yaml.YAMLError(f"it is nested deeper than {_MOST_LEVELS} levels")
        node = super().compose_node(parent, index)
        self._levels -= 1
        return node
