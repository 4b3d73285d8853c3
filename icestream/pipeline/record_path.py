"""From the bytes of a chunk to records: converters, the validator, the chain of transforms. Called by the
worker.

Made from a connector's config, once per process: what it learns of schemas and fields stays.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from icestream.api.batch import DATA_EXCEPTION, SINK_TASK
from icestream.api.config import Config
from icestream.converters.catalog import TAKES_ANY_BYTES, converter_from, named_converter
from icestream.kafka.chunk import Chunk
from icestream.pipeline.assembly import assembled
from icestream.records.records import Converted, Converter, Failure, Records
from icestream.rows.growth import GrowthLimit
from icestream.transforms.chain import Chain, chain_from
from icestream.validation.settings import schemas_of
from icestream.validation.validator import Schemas, Validator

VALUE_CONVERTER: Final = "VALUE_CONVERTER"
TRANSFORMATION: Final = "TRANSFORMATION"
TASK_PUT: Final = "TASK_PUT"
_STAGES: Final = {"key": "KEY_CONVERTER", "value": VALUE_CONVERTER, "header": "HEADER_CONVERTER"}
_KEYS: Final = ("key.converter", "value.converter", "header.converter", "transforms", "predicates")


@dataclass(frozen=True)
class RecordSettings:
    """What a task is told of records. Plain data: it crosses process boundaries."""

    config: Mapping[str, str]
    """The keys of the converters and transforms."""
    schemas: Schemas | None = None
    growth: GrowthLimit | None = None
    """How much tables may grow by the records of a batch; None: not at all, fields they lack are left out."""

    @classmethod
    def of(cls, config: Config) -> RecordSettings:
        """Reads the schemas from their files, which only this machine may have. Raises ConfigError."""
        mine = {key: value for key, value in config.items() if key.startswith(_KEYS)}
        evolves = config.get("iceberg.tables.evolve-schema-enabled", "").strip().lower() == "true"
        return cls(mine, schemas_of(config), GrowthLimit.from_config(config) if evolves else None)


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
    headers: Converter | None
    """None: headers cannot be wrong."""
    chain: Chain
    validator: Validator | None
    classes: Mapping[str, str]
    """Java's names of the converters of key, value and header."""

    def prepare(self, chunk: Chunk) -> Prepared:
        topic = chunk.topic
        keys = Converted([(None, None)]) if self.keys is None else self.keys.to_connect(topic, chunk.keys())
        values = self.values.to_connect(topic, chunk.values())
        # What Kafka Connect converts first is the reason: the key, then the value, then the headers.
        refused = self._refused_headers(chunk)
        refused |= self._refused("value", values.failed)
        refused |= self._refused("key", keys.failed)
        groups = assembled(chunk, keys, values, refused, with_headers=self.chain.needs_headers)
        if self.validator is not None:
            groups = self._valid(self.validator, groups, refused)
        outcome = self.chain.run(groups)
        for row, failed in outcome.failed.items():
            failure = failed.failure
            refused[row] = Refusal(TRANSFORMATION, failure.reason, failed.class_name, failure.exception)
        return Prepared(outcome.records, refused, outcome.dropped)

    def _valid(
        self, validator: Validator, groups: Sequence[Records], refused: dict[int, Refusal]
    ) -> list[Records]:
        good: list[Records] = []
        for group in groups:
            applied = validator.check(group)
            good.extend(applied.records)
            refused |= self._refused("value", applied.failed)
        return good

    def _refused_headers(self, chunk: Chunk) -> dict[int, Refusal]:
        if self.headers is None:
            return {}
        rows: dict[str, list[int]] = {}
        values: dict[str, list[bytes | None]] = {}
        for row, headers in enumerate(chunk.headers()):
            for name, value in headers:
                rows.setdefault(name, []).append(row)
                values.setdefault(name, []).append(value)
        refused: dict[int, Refusal] = {}
        for name, mine in rows.items():
            failed = self.headers.to_connect(chunk.topic, values[name]).failed
            refused |= self._refused("header", {mine[at]: why for at, why in failed.items()})
        return refused

    def _refused(self, kind: str, failed: Mapping[int, Failure]) -> dict[int, Refusal]:
        return {
            row: Refusal(_STAGES[kind], why.reason, self.classes[kind], why.exception)
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
