"""`FieldPartitioner`: a folder `<name>=<value>` for each field that is named. Called by `objects`.

Nothing is escaped, as in Java: a slash in a value makes a folder. `names` refuses what leads elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.api.batch import Failure
from icestream.connectors.s3.partitioners.partitioner import Encoded
from icestream.connectors.s3.partitioners.record_fields import FoundValues, NoSuchField, values_at
from icestream.records.column import Column
from icestream.records.java_classes import java_class
from icestream.records.records import Records

PARTITION_EXCEPTION: Final = "io.confluent.connect.storage.errors.PartitionException"


@dataclass(frozen=True)
class FieldPartitioner:
    names: tuple[str, ...]
    """`partition.field.name`, dots and all."""
    delim: str = "/"

    @property
    def by_time(self) -> bool:
        return False

    def encoded(self, records: Records, partition: int, now_ms: int) -> Encoded:
        failed: dict[int, Failure] = {}
        steps: list[pa.Array] = []
        for name in self.names:
            try:
                texts = self._texts(records, name, failed)
            except NoSuchField as error:
                return _all_failed(len(records), f"Error encoding partition: {error}")
            steps.append(pc.binary_join_element_wise(f"{name}=", texts, ""))
        paths = pc.binary_join_element_wise(*steps, self.delim).dictionary_encode()
        codes = paths.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return Encoded(paths.dictionary.to_pylist(), codes, failed=failed)

    def _texts(self, records: Records, name: str, failed: dict[int, Failure]) -> pa.Array:
        """What the folders show; never null."""
        found = list(values_at(records.value, name.split("."), len(records)))
        texts = [_shown(one, name, failed) for one in found]
        if len(texts) == 1:
            return texts[0]
        order = np.argsort(np.concatenate([one.positions for one in found]), kind="stable")
        return pa.concat_arrays(texts).take(pa.array(order))


def _all_failed(length: int, why: str) -> Encoded:
    failed: Mapping[int, Failure] = dict.fromkeys(range(length), Failure(why, PARTITION_EXCEPTION))
    return Encoded([""], np.zeros(length, np.int64), failed=failed)


def _shown(found: FoundValues, name: str, failed: dict[int, Failure]) -> pa.Array:
    value = found.value
    if isinstance(value, Column) and _is_plain(value):
        return value.values.cast(pa.string()).fill_null("null")
    why = Failure(
        f"Error encoding partition: the type {java_class(value)} of the field '{name}' is not supported as "
        "a partition key",
        PARTITION_EXCEPTION,
    )
    wrong = found.positions
    if isinstance(value, Column) and value.schema is None:
        wrong = wrong[~value.nulls]  # a null of a map has no type
    failed.update(dict.fromkeys(wrong.tolist(), why))
    return pa.array(["null"] * len(found.positions), pa.string())


def _is_plain(column: Column) -> bool:
    kind = column.values.type
    return bool(pt.is_integer(kind) or pt.is_string(kind) or pt.is_boolean(kind) or pt.is_null(kind))
