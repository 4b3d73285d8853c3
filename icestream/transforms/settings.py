"""The settings of Kafka Connect's own transforms and predicates, by the simple name of the class.

The catalog has them; the control plane validates with them, `build` parses with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from icestream.api.config import REQUIRED, ConfigDef, Setting, Type
from icestream.transforms import setting_rules as rules

_REPLACE_NULLS: Final = Setting(
    "replace.null.with.default",
    Type.BOOLEAN,
    True,
    "Whether a field that is null and has a default counts as its default (true) or as null (false).",
)


def _text(name: str, default: Any, doc: str, importance: str = "MEDIUM", **more: Any) -> Setting:
    return Setting(name, Type.STRING, default, doc, importance=importance, **more)


def _list(name: str, default: Any, doc: str, rule: rules.Rule, importance: str = "HIGH") -> Setting:
    return Setting(name, Type.LIST, default, doc, rule=rule, importance=importance)


_HAS_NAMES: Final = rules.names(may_be_empty=False)
_MAY_HAVE_NAMES: Final = rules.names(may_be_empty=True)
_SUFFIX: Final = "With ! at its end the field is required, with ? or without either it is optional."

CAST: Final = ConfigDef(
    (
        _list(
            "spec",
            REQUIRED,
            "What to cast: field:type pairs, or one type for the whole key or value. Types are int8, int16, "
            "int32, int64, float32, float64, boolean and string; binary casts to string only.",
            rules.casts,
        ),
        _REPLACE_NULLS,
    )
)
DROP_HEADERS: Final = ConfigDef(
    (_list("headers", REQUIRED, "Names of the headers to remove.", _HAS_NAMES),),
)
EXTRACT_FIELD: Final = ConfigDef(
    (
        _text("field", REQUIRED, "The field that takes the place of the whole."),
        _REPLACE_NULLS,
        _text(
            "field.syntax.version",
            "V1",
            "V1: the name is that of a field at the top. V2: dots lead into nested fields; backticks enclose "
            "a name that has dots itself.",
            "HIGH",
            choices=("V1", "V2"),
            ignores_case=True,
        ),
    )
)
FILTER: Final = ConfigDef(())
FLATTEN: Final = ConfigDef(
    (_text("delimiter", ".", "What stands between the names of the fields that become one."),)
)
HEADER_FROM: Final = ConfigDef(
    (
        _list("fields", REQUIRED, "The fields whose values go into headers.", rules.some),
        _list("headers", REQUIRED, "The headers' names, one for each field, in the same order.", rules.some),
        _text(
            "operation",
            REQUIRED,
            "move: the fields leave the key or value; copy: they stay there too.",
            "HIGH",
            choices=("move", "copy"),
        ),
        _REPLACE_NULLS,
    )
)
HOIST_FIELD: Final = ConfigDef(
    (_text("field", REQUIRED, "The name of the only field of the new struct or map."),)
)
INSERT_FIELD: Final = ConfigDef(
    (
        _text("topic.field", None, f"The field that gets the record's topic. {_SUFFIX}"),
        _text("partition.field", None, f"The field that gets the record's partition. {_SUFFIX}"),
        _text("offset.field", None, f"The field that gets the record's offset; for sinks only. {_SUFFIX}"),
        _text("timestamp.field", None, f"The field that gets the record's timestamp. {_SUFFIX}"),
        _text("static.field", None, f"The field that gets the same value in all records. {_SUFFIX}"),
        _text("static.value", None, "The value of static.field."),
        _REPLACE_NULLS,
    )
)
INSERT_HEADER: Final = ConfigDef(
    (
        _text("header", REQUIRED, "The header's name.", "HIGH", rule=rules.not_null),
        _text("value.literal", REQUIRED, "The header's value in all records.", "HIGH", rule=rules.not_null),
    )
)
MASK_FIELD: Final = ConfigDef(
    (
        _list("fields", REQUIRED, "The fields to mask.", _HAS_NAMES),
        _text(
            "replacement",
            None,
            "What stands in place of the values of numbers and strings; nothing: zero or empty.",
            "LOW",
            check=rules.not_empty,
        ),
        _REPLACE_NULLS,
    )
)
REGEX_ROUTER: Final = ConfigDef(
    (
        _text("regex", REQUIRED, "The pattern of whole topic names.", "HIGH", rule=rules.regex),
        _text("replacement", REQUIRED, "The new topic; $1 is the first group of the pattern.", "HIGH"),
    )
)
REPLACE_FIELD: Final = ConfigDef(
    (
        _list("exclude", [], "The fields that go; stronger than include.", _MAY_HAVE_NAMES, "MEDIUM"),
        _list("include", [], "The only fields that stay; empty: all.", _MAY_HAVE_NAMES, "MEDIUM"),
        _list("renames", [], "New names, as old:new pairs.", rules.renames, "MEDIUM"),
        _REPLACE_NULLS,
    ),
    former={"blacklist": "exclude", "whitelist": "include"},
)
SET_SCHEMA_METADATA: Final = ConfigDef(
    (
        _text("schema.name", None, "The schema's name.", "HIGH"),
        Setting("schema.version", Type.INT, None, "The schema's version.", importance="HIGH"),
        _REPLACE_NULLS,
    )
)
TIMESTAMP_CONVERTER: Final = ConfigDef(
    (
        _text("field", "", "The field with the timestamp; empty: the whole key or value is one.", "HIGH"),
        _text(
            "target.type",
            REQUIRED,
            "What the timestamp becomes: string, unix, Date, Time or Timestamp.",
            "HIGH",
            choices=("string", "unix", "Date", "Time", "Timestamp"),
        ),
        _text(
            "format",
            "",
            "The pattern of timestamps that are strings, before or after, in the letters of Java's "
            "SimpleDateFormat.",
        ),
        _text(
            "unix.precision",
            "milliseconds",
            "The unit of timestamps that are numbers, before or after. Nothing finer than a millisecond "
            "survives.",
            "LOW",
            choices=("nanoseconds", "microseconds", "milliseconds", "seconds"),
        ),
        _REPLACE_NULLS,
    )
)
TIMESTAMP_ROUTER: Final = ConfigDef(
    (
        _text(
            "topic.format",
            "${topic}-${timestamp}",
            "The new topic; ${topic} is the old one, ${timestamp} the record's timestamp.",
            "HIGH",
        ),
        _text(
            "timestamp.format",
            "yyyyMMdd",
            "How the timestamp is written, in the letters of Java's SimpleDateFormat.",
            "HIGH",
        ),
    )
)
VALUE_TO_KEY: Final = ConfigDef(
    (_list("fields", REQUIRED, "The fields of the value that become the key.", _HAS_NAMES), _REPLACE_NULLS)
)

TRANSFORMS: Final[Mapping[str, ConfigDef]] = {
    "Cast": CAST,
    "DropHeaders": DROP_HEADERS,
    "ExtractField": EXTRACT_FIELD,
    "Filter": FILTER,
    "Flatten": FLATTEN,
    "HeaderFrom": HEADER_FROM,
    "HoistField": HOIST_FIELD,
    "InsertField": INSERT_FIELD,
    "InsertHeader": INSERT_HEADER,
    "MaskField": MASK_FIELD,
    "RegexRouter": REGEX_ROUTER,
    "ReplaceField": REPLACE_FIELD,
    "SetSchemaMetadata": SET_SCHEMA_METADATA,
    "TimestampConverter": TIMESTAMP_CONVERTER,
    "TimestampRouter": TIMESTAMP_ROUTER,
    "ValueToKey": VALUE_TO_KEY,
}
PREDICATES: Final[Mapping[str, ConfigDef]] = {
    "HasHeaderKey": ConfigDef(
        (_text("name", REQUIRED, "The name of the header.", check=rules.not_empty),),
    ),
    "RecordIsTombstone": ConfigDef(()),
    "TopicNameMatches": ConfigDef(
        (_text("pattern", REQUIRED, "The pattern of whole topic names.", rule=rules.filled_regex),),
    ),
}
