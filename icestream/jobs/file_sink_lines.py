"""The lines that FileStreamSink writes for a chunk: the text of each record's value, as Java prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from icestream.api.batch import Rejected
from icestream.converters.value_text import value_texts
from icestream.kafka.chunk import Chunk
from icestream.pipeline.record_path import Prepared


class Path(Protocol):
    """`pipeline.record_path.RecordPath` is the real one."""

    def prepare(self, chunk: Chunk) -> Prepared: ...


@dataclass(frozen=True)
class ChunkLines:
    text: list[bytes]
    rejected: list[Rejected]


def chunk_lines(path: Path, chunk: Chunk) -> ChunkLines:
    prepared = path.prepare(chunk)
    lines: dict[int, bytes] = {}
    for records in prepared.records:
        texts = value_texts(records.value, len(records))
        shown = (b"null" if text is None else text.encode(errors="replace") for text in texts)
        lines.update(zip(records.rows.tolist(), shown, strict=True))
    rejected = [
        chunk.rejected(row, why.stage, why.reason, why.class_name, why.exception)
        for row, why in sorted(prepared.refused.items())
    ]
    return ChunkLines([lines[row] for row in sorted(lines)], rejected)
