"""The settings of Iceberg's transforms, by the simple name of the class; listed in the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icestream.api.config import REQUIRED, ConfigDef, Setting, Type

SOURCE_FIELD, TARGET_FIELD = "source.field", "target.field"
CDC_TARGET_PATTERN: Final = "cdc.target.pattern"
JSON_ROOT: Final = "json.root"
FIELD_NAME, NESTED, EXTERNAL_FIELD = "field_name", "nested", "external_field"
ARRAY_HANDLING_MODE: Final = "array_handling_mode"

ICEBERG_SETTINGS: Final[Mapping[str, ConfigDef]] = {
    "CopyValue": ConfigDef(
        (
            Setting(SOURCE_FIELD, Type.STRING, REQUIRED, "The field to copy.", importance="HIGH"),
            Setting(TARGET_FIELD, Type.STRING, REQUIRED, "The field to copy it to.", importance="HIGH"),
        )
    ),
    "DebeziumTransform": ConfigDef(
        (
            Setting(
                CDC_TARGET_PATTERN,
                Type.STRING,
                None,
                "What _cdc.target is to be; {db} and {table} stand for the names in the record.",
            ),
        )
    ),
    "DmsTransform": ConfigDef(()),
    "JsonToMapTransform": ConfigDef(
        (
            Setting(
                JSON_ROOT,
                Type.BOOLEAN,
                False,
                "Whether the whole record becomes one map named payload (true), or a struct whose nested "
                "objects are maps (false).",
            ),
        )
    ),
    "KafkaMetadataTransform": ConfigDef(
        (
            Setting(
                FIELD_NAME,
                Type.STRING,
                "_kafka_metadata",
                "The field that holds topic, partition, offset and timestamp, or the prefix of four fields.",
                importance="LOW",
            ),
            Setting(
                NESTED,
                Type.BOOLEAN,
                False,
                "Whether they are in one nested field (true) or in four (false).",
                importance="LOW",
            ),
            Setting(
                EXTERNAL_FIELD,
                Type.STRING,
                None,
                "name,value of a text to put beside them, such as cluster,eu-1.",
                importance="LOW",
            ),
        )
    ),
    "MongoDebeziumTransform": ConfigDef(
        (
            Setting(
                ARRAY_HANDLING_MODE,
                Type.STRING,
                None,
                "array: MongoDB's arrays stay arrays, with elements of one type; document: they become "
                "structs with fields _0, _1 and so on.",
            ),
        )
    ),
}
