"""Connectors are found by their entry points; those that cannot be used are told, and end nothing."""

from importlib.metadata import Distribution, EntryPoint
from pathlib import Path

import pytest

from icestream import plugins
from icestream.api.config import Config
from icestream.api.connector import JavaClass
from icestream.api.errors import NotFoundError, Problem
from icestream.api.sink import Sink, SinkPlugin
from icestream.cluster.configs.validation import validate_connector
from icestream.plugins import GROUP, Installed, find_connector, load_plugins

OURS = "icestream.connectors.iceberg.plugin:IcebergPlugin"


class Opened(SinkPlugin):
    def open(self, name: str, config: Config) -> Sink:
        raise AssertionError("nobody runs it")


class Toy(Opened):
    classes = (JavaClass("com.example.ToyConnector", "com.example.ToyTask"),)


class Closed(SinkPlugin):
    classes = (JavaClass("com.example.ClosedConnector", "com.example.ClosedTask"),)


class Failing(Toy):
    def problems(self, config: Config) -> list[Problem]:
        raise KeyError("s3cret")


class Thief(Opened):
    classes = (
        JavaClass("com.example.Harmless", "t"),
        JavaClass("org.apache.iceberg.connect.IcebergSinkConnector", "t"),
    )


class Nameless(Opened):
    pass


def _refusal(abstract: type) -> str:
    """In the words of this Python, which differ."""
    with pytest.raises(TypeError) as raised:
        abstract()
    return str(raised.value)


class _Package(Distribution):
    def __init__(self, name: str) -> None:
        self._text = f"Name: {name}\nVersion: 1"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        raise NotImplementedError


def point(package: str, value: str) -> EntryPoint:
    # Python's own readers of metadata set `dist` in this way.
    return EntryPoint("it", value, GROUP)._for(_Package(package))  # type: ignore[attr-defined, no-any-return]


def here(name: str) -> str:
    return f"{__name__}:{name}"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest imports this module under a name that `import` does not find."""
    import sys

    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])


def names(found: Installed) -> list[str]:
    return [one.class_name for one in found.connectors]


def test_our_own_come_first_and_others_are_added() -> None:
    found = load_plugins([point("a-toy", here("Toy")), point("icestream", OURS)])
    assert found.problems == []
    assert names(found)[0] == "org.apache.iceberg.connect.IcebergSinkConnector"
    assert names(found)[-1] == "com.example.ToyConnector"


def test_a_class_that_two_plugins_claim_is_the_first_ones() -> None:
    found = load_plugins([point("a-thief", here("Thief")), point("icestream", OURS)])
    (problem,) = found.problems
    assert "'a-thief' is left out" in problem
    assert "org.apache.iceberg.connect.IcebergSinkConnector" in problem
    assert "com.example.Harmless" not in names(found)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no.such.module:Plugin", "ModuleNotFoundError"),
        ("icestream.plugins:NoSuchThing", "AttributeError"),
        (f"{__name__}:Nameless", "has no JavaClass in classes"),
        (f"{__name__}:Closed", f"TypeError: {_refusal(Closed)}"),
        ("icestream.plugins:GROUP", "neither a SinkPlugin nor a SourcePlugin"),
    ],
)
def test_one_that_does_not_load_is_one_sentence(value: str, reason: str) -> None:
    found = load_plugins([point("broken", value), point("icestream", OURS)])
    (problem,) = found.problems
    assert problem.startswith("connector plugin 'it' of package 'broken' cannot be loaded")
    assert reason in problem
    assert names(found)


def test_one_that_fails_to_check_a_config_is_one_sentence_on_its_class(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    found = load_plugins([point("failing", here("Failing")), point("icestream", OURS)])
    monkeypatch.setattr(plugins, "installed", lambda: found)
    checked = validate_connector(
        {"name": "x", "connector.class": "com.example.ToyConnector", "topics": "t"}, {}
    )
    (problem,) = (one for one in checked.problems if one.key == "connector.class")
    assert problem.message.startswith(
        "The plugin of com.example.ToyConnector cannot check this config: it raised KeyError; correct or"
    )
    assert "Failing raised KeyError at " in caplog.text
    assert "s3cret" not in caplog.text


def test_old_metadata_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = load_plugins([])
    monkeypatch.setattr(plugins, "installed", lambda: nothing)
    with pytest.raises(NotFoundError, match=r"its metadata is missing or of an older version; install icest"):
        find_connector("IcebergSink")
