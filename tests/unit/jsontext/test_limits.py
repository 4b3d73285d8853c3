"""Values that no reader could take apart are found among any others, and nothing else is."""

import pytest

from icestream.jsontext.schemaless import beyond_limits

PLAIN = b'{"a":"' + b"x" * 700 + b'"}'


def limits(values: list[bytes]) -> dict[int, str]:
    return beyond_limits(values)


@pytest.mark.parametrize(
    "value",
    [
        b"[" * 911 + b"]" * 911,
        b'{"a":' * 911 + b"1" + b',"z":2}' * 911,
        b'[{"a": ' * 460 + b"1" + b" } ]" * 460,
        b"[" * 5000,
        b'{"n":' + b"7" * 1001 + b"}",
        b'{"s":"' + b"x" * 777 + b'","n":-' + b"1" * 1001 + b".5}",
    ],
)
@pytest.mark.parametrize("before", [[], [b"", b"{}"], [PLAIN] * 3, [b"[" + b"4" * 900 + b"]"] * 4])
def test_values_beyond_the_limits_are_found_wherever_they_are(value: bytes, before: list[bytes]) -> None:
    found = limits([*before, value, PLAIN, b""])
    assert list(found) == [len(before)]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        PLAIN,
        b"[" * 910 + b"]" * 910,
        b"[" + b"[]," * 1200 + b"[]]",
        b'{"s":"' + b"[" * 1200 + b'"}',
        b'{"s":"\\"' + b"[{" * 1200 + b'"}',
        b'{"s":"' + b"1" * 2000 + b'"}',
        b'{"n":' + b"7" * 1000 + b"}",
        b"[" + b"1234567," * 300 + b"1]",
    ],
)
def test_nothing_else_is_refused(value: bytes) -> None:
    assert limits([value, PLAIN, value]) == {}
