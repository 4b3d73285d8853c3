"""The lock file of Java artifacts: which files belong to a set, with their sizes and hashes.

`embedded.jars` fetches them; `scripts/lock_java.py` writes the file.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOCK: Final = Path(__file__).with_name("java-artifacts.lock")
"""Of what the product fetches. Tests and benchmarks have another one."""


@dataclass(frozen=True)
class Coordinate:
    """`group:artifact:version[:classifier][@ending]`."""

    group: str
    artifact: str
    version: str
    classifier: str = ""
    ending: str = "jar"

    @classmethod
    def parse(cls, text: str) -> Coordinate:
        rest, _, ending = text.partition("@")
        parts = rest.split(":")
        if len(parts) not in (3, 4) or not all(parts):
            raise ValueError(f"'{text}' is not of the form group:artifact:version[:classifier][@ending]")
        group, artifact, version, *classifier = parts
        return cls(group, artifact, version, "".join(classifier), ending or "jar")

    def __str__(self) -> str:
        parts = (self.group, self.artifact, self.version, self.classifier)
        return ":".join(filter(None, parts)) + (f"@{self.ending}" if self.ending != "jar" else "")

    @property
    def file_name(self) -> str:
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{classifier}.{self.ending}"

    @property
    def path(self) -> str:
        """Where a Maven repository has it."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


@dataclass(frozen=True)
class Artifact:
    coordinate: Coordinate
    size: int
    sha256: str


@dataclass(frozen=True)
class ArtifactSet:
    name: str
    roots: Sequence[Coordinate]
    alone: bool
    """Whether it has only its roots, without what they need."""
    artifacts: Sequence[Artifact]


@functools.cache
def read_lock(path: Path = LOCK) -> Mapping[str, ArtifactSet]:
    """The sets of a lock file by their names."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    files: dict[str, list[Artifact]] = {name: [] for name in content["sets"]}
    for text, given in content.get("artifacts", {}).items():
        artifact = Artifact(Coordinate.parse(text), given["size"], given["sha256"])
        for name in given["sets"]:
            files[name].append(artifact)
    return {
        name: ArtifactSet(
            name, tuple(map(Coordinate.parse, given["roots"])), given.get("alone", False), tuple(files[name])
        )
        for name, given in content["sets"].items()
    }


def root(name: str, lock: Path = LOCK) -> Coordinate:
    """What a set is made for: its first root."""
    return read_lock(lock)[name].roots[0]
