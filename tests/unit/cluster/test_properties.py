"""Java's `.properties`, whole, and connectors as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.api.errors import ConfigError
from icestream.cluster.configs.properties import parse_properties, read_connector, read_properties


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=1", {"a": "1"}),
        ("a:1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("a\t=\t1", {"a": "1"}),
        ("  a = 1 ", {"a": "1 "}),
        ("a==1", {"a": "=1"}),
        ("a = : 1", {"a": ": 1"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("# note\n! note\n\n  # note\na=1", {"a": "1"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1,\\\n    2,\\\n    3", {"a": "1,2,3"}),
        ("a=1\\\n# no comment", {"a": "1# no comment"}),
        ("# note \\\na=1", {"a": "1"}),
        ("a=c:\\\\dir\\\\", {"a": "c:\\dir\\"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a\\ b\\:c\\=d=1", {"a b:c=d": "1"}),
        ("a=\\t\\n\\r\\f\\q", {"a": "\t\n\r\fq"}),
        ("a=\\u00e4\\u0041", {"a": "äA"}),
        ("a=\\uD83D\\uDE00", {"a": "😀"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\\", {"a": "1"}),
        ("\\\n# note\nb=1", {"b": "1"}),
        ("\\\n\nb=1", {"b": "1"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("a=\\uD83D", {"a": "\N{REPLACEMENT CHARACTER}"}),
        ("", {}),
    ],
)
def test_follows_the_rules_of_java(text: str, pairs: dict[str, str]) -> None:
    assert parse_properties(text) == pairs


def test_a_bad_escape_names_file_and_line() -> None:
    with pytest.raises(ConfigError, match=r"worker\.properties, line 3: '\\uZZZZ' is not a character"):
        parse_properties("a=1\n\nb=\\uZZZZ", "worker.properties")


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1", "utf-8-sig"])
def test_reads_both_encodings(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "w.properties"
    file.write_bytes("a=größe".encode(encoding))
    assert read_properties(file) == {"a": "größe"}


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*none\.properties: No such file"):
        read_properties(tmp_path / "none.properties")


def test_reads_a_connector_in_every_form(tmp_path: Path) -> None:
    forms = {
        "a.properties": "name=sink\ntasks.max=2\nflag=true",
        "b.json": '{"name": "sink", "config": {"tasks.max": 2, "flag": true}}',
        "c.json": '{"name": "sink", "tasks.max": "2", "flag": true}',
        "d.txt": '{"name": "sink", "tasks.max": "2", "flag": "true"}',
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text)
        found = read_connector(tmp_path / name)
        assert (found.name, found.config) == ("sink", {"name": "sink", "tasks.max": "2", "flag": "true"}), (
            name
        )


def test_takes_the_initial_state_of_a_request(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text('{"name": "sink", "initial_state": "PAUSED", "config": {}}')
    assert read_connector(file).initial_state == "PAUSED"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"name": "a",\n "config": {', "line 2: not valid JSON"),
        ('{"name": ' + "[" * 100_000, "nested too deep"),
        ("[]", "a connector is a JSON object, not a JSON list"),
        ('{"config": {}}', "has no 'name'"),
        ('{"tasks.max": "1"}', "has no 'name'"),
        ('{"name": "a", "config": {"name": "b"}}', "'name' is 'a' but 'config' says 'b'"),
        ('{"name": "a", "config": {"x": [1]}}', "the value of 'x' is a JSON list"),
        ('{"name": "a", "config": {"x": null}}', "the value of 'x' is a null"),
    ],
)
def test_refuses_a_broken_connector(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "c.json"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_connector(file)
    assert reason in str(caught.value)
    assert str(file) in str(caught.value)
