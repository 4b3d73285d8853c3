"""From the bytes of a chunk to records: converters, the validator, the chain of transforms. Called by the
worker.

Made from a connector's config, once per process: what it learns of schemas and fields stays.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from icestream.api.config import Config
from icestream.converters.catalog import TAKES_ANY_BYTES, converter_from, named_converter
from icestream.kafka.chunk import Chunk
from icestream.pipeline.assembly import assembled
from icestream.records.records import Converted, Converter, Failure, Records
from icestream.transforms.chain import Chain, chain_from
from icestream.validation.settings import schemas_of
from icestream.validation.validator import Schemas, Validator

VALUE_CONVERTER: Final = "VALUE_CONVERTER"
_STAGES: Final = {"key": "KEY_CONVERTER", "value": VALUE_CONVERTER, "header": "HEADER_CONVERTER"}
_KEYS: Final = ("key.converter", "value.converter", "header.converter", "transforms", "predicates")


@dataclass(frozen=True)
class RecordSettings:
    """What a task is told of records. Plain data: it crosses process boundaries."""

    config: Mapping[str, str]
    """The keys of the converters and transforms."""
    schemas: Schemas | None = None

    @classmethod
    def of(cls, config: Config) -> RecordSettings:
        """Reads the schemas from their files, which only this machine may have. Raises ConfigError."""
        mine = {key: value for key, value in config.items() if key.startswith(_KEYS)}
        return cls(mine, schemas_of(config))


@dataclass
class Prepared:
    """Every row of a chunk is in one of the three."""

    records: Sequence[Records]
    failed: dict[int, Failure] = field(default_factory=dict)
    dropped: Mapping[int, str] = field(default_factory=dict)
    """Row → alias of the transform that dropped it."""


@dataclass(frozen=True)
class RecordPath:
    keys: Converter | None
    """None: nobody asks for keys, and they cannot be wrong."""
    values: Converter
    headers: Converter | None
    """None: headers cannot be wrong."""
    chain: Chain
    validator: Validator | None
    classes: Mapping[str, str]
    """Java's names of the converters of key, value and header."""

    def named(self, failure: Failure) -> Failure:
        """A failure that a sink found in a value that it decoded itself, with the class of the converter."""
        if failure.stage != VALUE_CONVERTER:
            return failure
        return replace(failure, class_name=self.classes["value"])

    def prepare(self, chunk: Chunk) -> Prepared:
        topic = chunk.topic
        keys = Converted([(None, None)]) if self.keys is None else self.keys.to_connect(topic, chunk.keys())
        values = self.values.to_connect(topic, chunk.values())
        # What Kafka Connect converts first is the reason: the key, then the value, then the headers.
        failed_rows = self._failed_headers(chunk)
        failed_rows |= self._failed("value", values.failed)
        failed_rows |= self._failed("key", keys.failed)
        groups = assembled(chunk, keys, values, failed_rows, with_headers=self.chain.needs_headers)
        if self.validator is not None:
            groups = self._valid(self.validator, groups, failed_rows)
        outcome = self.chain.run(groups)
        failed_rows |= outcome.failed
        return Prepared(outcome.records, failed_rows, outcome.dropped)

    def _valid(
        self, validator: Validator, groups: Sequence[Records], failed_rows: dict[int, Failure]
    ) -> list[Records]:
        good: list[Records] = []
        for group in groups:
            applied = validator.check(group)
            good.extend(applied.records)
            failed_rows |= self._failed("value", applied.failed)
        return good

    def _failed_headers(self, chunk: Chunk) -> dict[int, Failure]:
        if self.headers is None:
            return {}
        rows: dict[str, list[int]] = {}
        values: dict[str, list[bytes | None]] = {}
        for row, headers in enumerate(chunk.headers()):
            for name, value in headers:
                rows.setdefault(name, []).append(row)
                values.setdefault(name, []).append(value)
        failed_rows: dict[int, Failure] = {}
        for name, mine in rows.items():
            failed = self.headers.to_connect(chunk.topic, values[name]).failed
            failed_rows |= self._failed("header", {mine[at]: why for at, why in failed.items()})
        return failed_rows

    def _failed(self, kind: str, failed: Mapping[int, Failure]) -> dict[int, Failure]:
        return {
            row: replace(why, stage=_STAGES[kind], class_name=self.classes[kind])
            for row, why in failed.items()
        }


def record_path_from(settings: RecordSettings) -> RecordPath:
    """Raises ConfigError."""
    config = settings.config
    chain = chain_from(config)
    classes = {kind: named_converter(config, kind).class_name for kind in ("key", "value", "header")}
    needs_keys = chain.needs_keys or classes["key"] not in TAKES_ANY_BYTES
    return RecordPath(
        keys=converter_from(config, "key") if needs_keys else None,
        values=converter_from(config, "value"),
        headers=None if classes["header"] in TAKES_ANY_BYTES else converter_from(config, "header"),
        chain=chain,
        validator=Validator(settings.schemas) if settings.schemas else None,
        classes=classes,
    )


def process_record_path(settings: RecordSettings) -> RecordPath:
    """This process's record path for a connector."""
    return _record_path(pickle.dumps((sorted(settings.config.items()), settings.schemas)))


@functools.lru_cache(maxsize=64)
def _record_path(pickled: bytes) -> RecordPath:
    config, schemas = pickle.loads(pickled)
    return record_path_from(RecordSettings(dict(config), schemas))
