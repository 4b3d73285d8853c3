"""Objects as YAML for people: texts of several lines as they read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from icestream.operator.manifests.facts import Manifest


def as_yaml(objects: Iterable[Manifest]) -> str:
    text: str = yaml.dump_all(list(objects), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        """Equal maps are written out: `kubectl` users read every object on its own."""
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)
