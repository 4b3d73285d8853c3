import pytest

from icestream.rest.exchange import UnreadableType, answer_type_of, is_json_type


@pytest.mark.parametrize(
    ("sent", "readable"),
    [
        ("application/json", True),
        ("APPLICATION/JSON; charset=utf-8", True),
        ("text/plain", False),
        ("application/json5", False),
        ("", None),
        ("*/*", None),
        ("application/*", None),
    ],
)
def test_what_a_body_is(sent: str, readable: bool | None) -> None:
    assert is_json_type(sent) is readable


def test_a_type_without_a_slash_is_no_type() -> None:
    with pytest.raises(UnreadableType):
        is_json_type("json")


@pytest.mark.parametrize(
    ("accept", "answered"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/html, */*;q=0.1", "application/json"),
        ("application/json; charset=utf-8", "application/json;charset=utf-8"),
        ("application/json;q=0.5", "application/json"),
        ("text/html", None),
        ("application/vnd.api+json", None),
    ],
)
def test_what_a_client_takes(accept: str, answered: str | None) -> None:
    assert answer_type_of(accept) == answered
