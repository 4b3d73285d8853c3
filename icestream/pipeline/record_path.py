"""From the bytes of a chunk to records: converters, the validator, the chain of transforms. Called by the
worker.

Made from a connector's config, once per process: what it learns of schemas and fields stays.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from icestream.api.batch import DATA_EXCEPTION, SINK_TASK
from icestream.converters.build import TAKES_ANY_BYTES, converter_class, converter_from
from icestream.kafka.reader import Chunk
from icestream.pipeline.assembly import assembled
from icestream.records.records import Converted, Converter, Failure, Records
from icestream.transforms.build import chain_from
from icestream.transforms.chain import Chain

KEY_CONVERTER = "KEY_CONVERTER"
VALUE_CONVERTER = "VALUE_CONVERTER"
HEADER_CONVERTER = "HEADER_CONVERTER"
TRANSFORMATION = "TRANSFORMATION"
TASK_PUT = "TASK_PUT"


@dataclass(frozen=True)
class Refusal:
    """Why a record is rejected, as a dead letter tells it."""

    stage: str
    reason: str
    class_name: str = SINK_TASK
    exception: str = DATA_EXCEPTION


@dataclass
class Prepared:
    """Every row of a chunk is in one of the three."""

    records: Sequence[Records]
    refused: dict[int, Refusal] = field(default_factory=dict)
    dropped: Mapping[int, str] = field(default_factory=dict)
    """Row → alias of the transform that dropped it."""


@dataclass(frozen=True)
class RecordPath:
    keys: Converter | None
    """None: nobody asks for keys, and they cannot be wrong."""
    values: Converter
    chain: Chain
    validator: Any
    key_class: str = ""
    value_class: str = ""

    def prepare(self, chunk: Chunk) -> Prepared:
        topic = chunk.partition.topic
        keys = Converted([(None, None)]) if self.keys is None else self.keys.to_connect(topic, chunk.keys())
        values = self.values.to_connect(topic, chunk.values())
        refused = _refused(keys.failed, KEY_CONVERTER, self.key_class)
        refused |= _refused(values.failed, VALUE_CONVERTER, self.value_class)
        groups = assembled(chunk, keys, values, with_headers=self.chain.needs_headers)
        if self.validator is not None:
            groups = self._valid(groups, refused)
        outcome = self.chain.run(groups)
        for row, failed in outcome.failed.items():
            failure = failed.failure
            refused[row] = Refusal(TRANSFORMATION, failure.reason, failed.class_name, failure.exception)
        return Prepared(outcome.records, refused, outcome.dropped)

    def _valid(self, groups: Sequence[Records], refused: dict[int, Refusal]) -> list[Records]:
        assert self.validator is not None
        good: list[Records] = []
        for group in groups:
            applied = self.validator.check(group)
            good.extend(applied.records)
            refused |= _refused(applied.failed, VALUE_CONVERTER, self.value_class)
        return good


def _refused(failed: Mapping[int, Failure], stage: str, class_name: str) -> dict[int, Refusal]:
    return {row: Refusal(stage, why.reason, class_name, why.exception) for row, why in failed.items()}


def record_path_from(config: Mapping[str, str]) -> RecordPath:
    chain = chain_from(config)
    key_class = converter_class(config, "key") if config.get("key.converter", "").strip() else ""
    is_without_keys = not key_class or (not chain.needs_keys and key_class in TAKES_ANY_BYTES)
    return RecordPath(
        None if is_without_keys else converter_from(config, "key"),
        converter_from(config, "value"),
        chain,
        None,
        key_class=key_class,
        value_class=converter_class(config, "value"),
    )


@functools.lru_cache(maxsize=64)
def _record_path(config: tuple[tuple[str, str], ...]) -> RecordPath:
    return record_path_from(dict(config))


def process_record_path(config: Mapping[str, str]) -> RecordPath:
    """This process's record path for a connector."""
    return _record_path(tuple(sorted(config.items())))
