"""The rules of the settings, in the words of Kafka Connect 4.3.1's own classes."""

from __future__ import annotations

import pytest

from icestream.transforms.settings import PREDICATES, TRANSFORMS

_ENUM = (
    "Invalid value java.lang.IllegalArgumentException: No enum constant "
    "org.apache.kafka.connect.data.Schema.Type."
)
_SPEC = "for configuration Invalid type found in casting spec:"
_NO_CAST = "supported types are [INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING]"
_ONE_CAST = (
    "Cast transformations that specify a type to cast the entire value to may only specify a single cast in "
    "their spec"
)


@pytest.mark.parametrize(
    ("name", "key", "text", "message"),
    [
        ("Cast", "spec", "", "Must specify at least one field to cast."),
        ("Cast", "spec", "a,b", f"{_ENUM}A {_SPEC} a"),
        ("Cast", "spec", "a:foo", f"{_ENUM}FOO {_SPEC} foo"),
        ("Cast", "spec", "a:", f"{_ENUM}A {_SPEC} a"),
        ("Cast", "spec", "a:int8,,b:int8", f"{_ENUM} {_SPEC} "),
        (
            "Cast",
            "spec",
            "a:b:c",
            "Invalid value [a:b:c] for configuration renames: Invalid rename mapping: a:b:c",
        ),
        ("Cast", "spec", "a:bytes", f"Cast transformation does not support casting to BYTES; {_NO_CAST}"),
        ("Cast", "spec", "int8,int16", _ONE_CAST),
        ("Cast", "spec", "a:int8,int16", _ONE_CAST),
        ("Cast", "spec", "a:int8,a:int16", None),
        ("Cast", "spec", "a: INT8 , b : string", None),
        (
            "DropHeaders",
            "headers",
            " ",
            "Configuration 'headers' must not be empty. Valid values include: any non-empty value",
        ),
        ("DropHeaders", "headers", "a,a", "Configuration 'headers' values must not be duplicated."),
        ("DropHeaders", "headers", "a,,b", "Configuration 'headers' values must not be empty."),
        ("DropHeaders", "headers", "a, b", None),
        ("ExtractField", "field.syntax.version", "v2", None),
        (
            "ExtractField",
            "field.syntax.version",
            "",
            "Invalid value  for configuration field.syntax.version: String must be one of (case insensitive)"
            ": V1, V2",
        ),
        ("HeaderFrom", "fields", "", "Invalid value [] for configuration fields: Empty list"),
        ("HeaderFrom", "fields", "a,,a", None),
        (
            "HeaderFrom",
            "operation",
            "MOVE",
            "Invalid value MOVE for configuration operation: String must be one of: move, copy",
        ),
        (
            "MaskField",
            "replacement",
            " ",
            "Invalid value  for configuration replacement: String must be non-empty",
        ),
        (
            "ReplaceField",
            "renames",
            "a",
            "Invalid value [a] for configuration renames: Invalid rename mapping: a",
        ),
        ("ReplaceField", "renames", ":b", None),
        ("ReplaceField", "include", "", None),
        ("ReplaceField", "exclude", "a,", "Configuration 'exclude' values must not be empty."),
        (
            "SetSchemaMetadata",
            "schema.version",
            "x",
            "Invalid value x for configuration schema.version: Not a number of type INT",
        ),
        (
            "TimestampConverter",
            "unix.precision",
            "x",
            "Invalid value x for configuration unix.precision: String must be one of: nanoseconds, "
            "microseconds, milliseconds, seconds",
        ),
        ("HasHeaderKey", "name", "", "Invalid value  for configuration name: String must be non-empty"),
        (
            "TopicNameMatches",
            "pattern",
            "",
            "Invalid value  for configuration pattern: String must be non-empty",
        ),
    ],
)
def test_a_value_is_judged_in_javas_words(name: str, key: str, text: str, message: str | None) -> None:
    problems = {**TRANSFORMS, **PREDICATES}[name].problems({key: text})
    assert [one.message for one in problems if one.key == key] == ([] if message is None else [message])


def test_a_missing_key_is_also_judged_as_a_null() -> None:
    assert [
        one.message for one in TRANSFORMS["HeaderFrom"].problems({"fields": "a", "operation": "copy"})
    ] == [
        'Missing required configuration "headers" which has no default value.',
        "Invalid value null for configuration headers: Empty list",
    ]
