"""Names of objects, and which of them are refused; `objects` asks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from icestream.api.offsets import Partition

LONGEST_KEY: Final = 1024
"""Bytes of a key, in S3."""
HIDDEN: Final = ".icestream"
"""The folder in which a folder of objects has what is not visible."""
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f]")
_STEPS: Final = re.compile(r"(?:^|[/\\])\.\.?(?:[/\\]|$)")


@dataclass(frozen=True)
class ObjectNames:
    """`<topics.dir>/<topic>/<folder>/<topic>+<partition>+<first offset><extension>`."""

    topics_dir: str = "topics"
    """Blank: there is no top level."""
    directory_delim: str = "/"
    file_delim: str = "+"
    offset_width: int = 10
    """Digits to which an offset is filled up with zeros."""
    longest_step: int | None = None
    """Bytes of a name between two slashes; file systems take 255."""

    def folder(self, topic: str, encoded: str) -> str:
        """Where the objects of an encoded partition are."""
        steps = [self.topics_dir] if self.topics_dir.strip() else []
        return self.directory_delim.join((*steps, topic, encoded))

    def key(self, folder: str, topic: str, partition: Partition, offset: int, extension: str) -> str:
        number = str(offset).zfill(self.offset_width)
        name = self.file_delim.join((topic, str(partition.number), number))
        return f"{folder}{self.directory_delim}{name}{extension}"

    def refusal(self, folder: str, topic: str, extension: str = "") -> str | None:
        """Why nothing may be written to a folder; None if it may. Values of records are in its name."""
        sample = self.key(folder, topic, Partition(topic, 0), 0, extension)
        if _CONTROLS.search(sample):
            return f"the folder {folder!r} has a control character in its name"
        if _STEPS.search(sample):
            return f"the name '{sample}' would lead out of the folder of its topic"
        # What is longest of the rest of the name: a partition and an offset of Kafka, and an extension.
        rest = len(self.key("", topic, Partition(topic, 2**31 - 1), 2**63 - 1, "").encode()) + _EXTENSION
        if len(folder.encode()) + rest > LONGEST_KEY:
            shown = f"{folder[:100]}…"
            return (
                f"the folder '{shown}' makes names of more than {LONGEST_KEY} bytes, which S3 does not take"
            )
        limit = self.longest_step
        if limit is not None and any(len(step.encode()) > limit for step in folder.split("/")):
            return f"the folder '{folder[:100]}…' has a name of more than {limit} bytes in it"
        delim = re.escape(self.file_delim)
        file = rf"{re.escape(topic)}{delim}[0-9]+{delim}[0-9]{{{self.offset_width},}}.*"
        if limit is not None and any(
            step == HIDDEN or re.fullmatch(file, step) is not None for step in folder.split("/")
        ):
            return f"the folder '{folder[:100]}' has a step in it that is a name for files"
        longest = self.key("", topic, Partition(topic, 99_999), 10**18, f".headers{extension}")
        if limit is not None and len(longest.rpartition("/")[2].encode()) > limit:
            return f"the topic '{topic[:100]}…' makes names of files of more than {limit} bytes"
        return None


_EXTENSION: Final = 40
"""Bytes of an extension, such as `.headers.snappy.parquet`."""
