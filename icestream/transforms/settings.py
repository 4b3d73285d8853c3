"""The settings of all transforms and predicates, by the simple name of the class, and what they ask of values
beyond their type, in Java's words.

The catalog has them; the control plane validates with them, `chain` parses with them. A rule gets the key and
the parsed value, which is None if there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from icestream.api.config import REQUIRED, ConfigDef, Setting, Type
from icestream.api.java_regex import pattern_problem

_Names = Sequence[str] | None
_Rule = Callable[[str, _Names], str | None]

_CASTS: Final = ("INT8", "INT16", "INT32", "INT64", "FLOAT32", "FLOAT64", "BOOLEAN", "STRING")
_NOT_CAST_TO: Final = ("ARRAY", "MAP", "STRUCT", "BYTES")


def _names(*, may_be_empty: bool) -> _Rule:
    """A list whose items are not empty and differ."""

    def judge(key: str, items: _Names) -> str | None:
        if items is None:
            return f"Configuration '{key}' values must not be null."
        if not items and not may_be_empty:
            return f"Configuration '{key}' must not be empty. Valid values include: any non-empty value"
        if len(set(items)) < len(items):
            return f"Configuration '{key}' values must not be duplicated."
        return f"Configuration '{key}' values must not be empty." if "" in items else None

    return judge


def _some(key: str, items: _Names) -> str | None:
    """A list with any items."""
    if items:
        return None
    return _invalid(key, "null" if items is None else "[]", "Empty list")


def _not_null(key: str, value: str | None) -> str | None:
    return _invalid(key, "null", "entry must be non null") if value is None else None


def _not_empty(value: str) -> str | None:
    return None if value else "String must be non-empty"


def _regex(key: str, value: str | None) -> str | None:
    """Java's kind of pattern."""
    if value is None:
        return _invalid(key, "null", "Invalid regex: there is none")
    reason = pattern_problem(value)
    return _invalid(key, value, f"Invalid regex: {reason}") if reason else None


def _filled_regex(key: str, value: str | None) -> str | None:
    return _regex(key, value) if value != "" else _invalid(key, "", "String must be non-empty")


def _renames(key: str, items: _Names) -> str | None:
    """Pairs such as `old:new`."""
    wrong = next((item for item in items or () if len(at_colons(item)) != 2), None)
    return None if wrong is None else _wrong_pair(items, wrong)


def _casts(key: str, items: _Names) -> str | None:
    """Pairs such as `field:type`, or one type alone."""
    if not items:
        return "Must specify at least one field to cast."
    for item in items:
        parts = at_colons(item)
        if not 1 <= len(parts) <= 2:
            return _wrong_pair(items, item)
        if problem := _cast_type(parts[-1].strip()):
            return problem
    if len(items) > 1 and any(len(at_colons(item)) == 1 for item in items):
        return (
            "Cast transformations that specify a type to cast the entire value to may only specify a single "
            "cast in their spec"
        )
    return None


def _cast_type(name: str) -> str | None:
    kind = name.upper()
    if kind in _CASTS:
        return None
    if kind in _NOT_CAST_TO:
        return (
            f"Cast transformation does not support casting to {kind}; "
            f"supported types are [{', '.join(_CASTS)}]"
        )
    return _invalid(
        f"Invalid type found in casting spec: {name}",
        "java.lang.IllegalArgumentException: No enum constant "
        f"org.apache.kafka.connect.data.Schema.Type.{kind}",
    )


def at_colons(pair: str) -> list[str]:
    """Cut as Java cuts: empty parts at the end do not count."""
    parts = pair.split(":")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def _wrong_pair(items: _Names, wrong: str) -> str:
    return _invalid("renames", f"[{', '.join(items or ())}]", f"Invalid rename mapping: {wrong}")


def _invalid(key: str, value: str, reason: str = "") -> str:
    return f"Invalid value {value} for configuration {key}" + (f": {reason}" if reason else "")


_REPLACE_NULLS: Final = Setting(
    "replace.null.with.default",
    Type.BOOLEAN,
    True,
    "Whether a field that is null and has a default counts as its default (true) or as null (false).",
)


def _text(name: str, default: Any, doc: str, importance: str = "MEDIUM", **more: Any) -> Setting:
    return Setting(name, Type.STRING, default, doc, importance=importance, **more)


def _list(name: str, default: Any, doc: str, rule: _Rule, importance: str = "HIGH") -> Setting:
    return Setting(name, Type.LIST, default, doc, rule=rule, importance=importance)


_HAS_NAMES: Final = _names(may_be_empty=False)
_MAY_HAVE_NAMES: Final = _names(may_be_empty=True)
_SUFFIX: Final = "With ! at its end the field is required, with ? or without either it is optional."

TRANSFORMS: Final[Mapping[str, ConfigDef]] = {
    "Cast": ConfigDef(
        (
            _list(
                "spec",
                REQUIRED,
                "What to cast: field:type pairs, or one type for the whole key or value. Types are int8, "
                "int16, int32, int64, float32, float64, boolean and string; binary casts to string only.",
                _casts,
            ),
            _REPLACE_NULLS,
        )
    ),
    "DropHeaders": ConfigDef(
        (_list("headers", REQUIRED, "Names of the headers to remove.", _HAS_NAMES),),
    ),
    "ExtractField": ConfigDef(
        (
            _text("field", REQUIRED, "The field that takes the place of the whole."),
            _REPLACE_NULLS,
            _text(
                "field.syntax.version",
                "V1",
                "V1: the name is that of a field at the top. V2: dots lead into nested fields; backticks "
                "enclose a name that has dots itself.",
                "HIGH",
                choices=("V1", "V2"),
                ignores_case=True,
            ),
        )
    ),
    "Filter": ConfigDef(()),
    "Flatten": ConfigDef(
        (_text("delimiter", ".", "What stands between the names of the fields that become one."),)
    ),
    "HeaderFrom": ConfigDef(
        (
            _list("fields", REQUIRED, "The fields whose values go into headers.", _some),
            _list("headers", REQUIRED, "The headers' names, one for each field, in the same order.", _some),
            _text(
                "operation",
                REQUIRED,
                "move: the fields leave the key or value; copy: they stay there too.",
                "HIGH",
                choices=("move", "copy"),
            ),
            _REPLACE_NULLS,
        )
    ),
    "HoistField": ConfigDef(
        (_text("field", REQUIRED, "The name of the only field of the new struct or map."),)
    ),
    "InsertField": ConfigDef(
        (
            _text("topic.field", None, f"The field that gets the record's topic. {_SUFFIX}"),
            _text("partition.field", None, f"The field that gets the record's partition. {_SUFFIX}"),
            _text(
                "offset.field", None, f"The field that gets the record's offset; for sinks only. {_SUFFIX}"
            ),
            _text("timestamp.field", None, f"The field that gets the record's timestamp. {_SUFFIX}"),
            _text("static.field", None, f"The field that gets the same value in all records. {_SUFFIX}"),
            _text("static.value", None, "The value of static.field."),
            _REPLACE_NULLS,
        )
    ),
    "InsertHeader": ConfigDef(
        (
            _text("header", REQUIRED, "The header's name.", "HIGH", rule=_not_null),
            _text("value.literal", REQUIRED, "The header's value in all records.", "HIGH", rule=_not_null),
        )
    ),
    "MaskField": ConfigDef(
        (
            _list("fields", REQUIRED, "The fields to mask.", _HAS_NAMES),
            _text(
                "replacement",
                None,
                "What stands in place of the values of numbers and strings; nothing: zero or empty.",
                "LOW",
                check=_not_empty,
            ),
            _REPLACE_NULLS,
        )
    ),
    "RegexRouter": ConfigDef(
        (
            _text("regex", REQUIRED, "The pattern of whole topic names.", "HIGH", rule=_regex),
            _text("replacement", REQUIRED, "The new topic; $1 is the first group of the pattern.", "HIGH"),
        )
    ),
    "ReplaceField": ConfigDef(
        (
            _list("exclude", [], "The fields that go; stronger than include.", _MAY_HAVE_NAMES, "MEDIUM"),
            _list("include", [], "The only fields that stay; empty: all.", _MAY_HAVE_NAMES, "MEDIUM"),
            _list("renames", [], "New names, as old:new pairs.", _renames, "MEDIUM"),
            _REPLACE_NULLS,
        ),
        former={"blacklist": "exclude", "whitelist": "include"},
    ),
    "SetSchemaMetadata": ConfigDef(
        (
            _text("schema.name", None, "The schema's name.", "HIGH"),
            Setting("schema.version", Type.INT, None, "The schema's version.", importance="HIGH"),
            _REPLACE_NULLS,
        )
    ),
    "TimestampConverter": ConfigDef(
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
    ),
    "TimestampRouter": ConfigDef(
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
    ),
    "ValueToKey": ConfigDef(
        (
            _list("fields", REQUIRED, "The fields of the value that become the key.", _HAS_NAMES),
            _REPLACE_NULLS,
        )
    ),
    "CopyValue": ConfigDef(
        (
            _text("source.field", REQUIRED, "The field to copy.", "HIGH"),
            _text("target.field", REQUIRED, "The field to copy it to.", "HIGH"),
        )
    ),
    "DebeziumTransform": ConfigDef(
        (
            _text(
                "cdc.target.pattern",
                None,
                "What _cdc.target is to be; {db} and {table} stand for the names in the record.",
            ),
        )
    ),
    "DmsTransform": ConfigDef(()),
    "JsonToMapTransform": ConfigDef(
        (
            Setting(
                "json.root",
                Type.BOOLEAN,
                False,
                "Whether the whole record becomes one map named payload (true), or a struct whose nested "
                "objects are maps (false).",
            ),
        )
    ),
    "KafkaMetadataTransform": ConfigDef(
        (
            _text(
                "field_name",
                "_kafka_metadata",
                "The field that holds topic, partition, offset and timestamp, or the prefix of four fields.",
                "LOW",
            ),
            Setting(
                "nested",
                Type.BOOLEAN,
                False,
                "Whether they are in one nested field (true) or in four (false).",
                importance="LOW",
            ),
            _text(
                "external_field",
                None,
                "name,value of a text to put beside them, such as cluster,eu-1.",
                "LOW",
            ),
        )
    ),
    "MongoDebeziumTransform": ConfigDef(
        (
            _text(
                "array_handling_mode",
                None,
                "array: MongoDB's arrays stay arrays, with elements of one type; document: they become "
                "structs with fields _0, _1 and so on.",
            ),
        )
    ),
}
PREDICATES: Final[Mapping[str, ConfigDef]] = {
    "HasHeaderKey": ConfigDef(
        (_text("name", REQUIRED, "The name of the header.", check=_not_empty),),
    ),
    "RecordIsTombstone": ConfigDef(()),
    "TopicNameMatches": ConfigDef(
        (_text("pattern", REQUIRED, "The pattern of whole topic names.", rule=_filled_regex),),
    ),
}
