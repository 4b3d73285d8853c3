"""Configs as somebody edits them who must not see their secrets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from icestream.api.config import Config
from icestream.api.errors import ConfigError, Problem
from icestream.cluster.configs.edits import HiddenReport, edited
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores.connector_store import MemoryStore
from icestream.testing import FakeManagers

JSON = "org.apache.kafka.connect.json.JsonConverter"
CONFIG = {
    "name": "sink",
    "connector.class": "IcebergSink",
    "topics": "t",
    "iceberg.tables": "db.t",
    "iceberg.catalog.type": "rest",
    "iceberg.catalog.uri": "http://alice:hunter22@cat:8181",
    "iceberg.catalog.s3.secret-access-key": "sesame-sesame",
    "iceberg.catalog.token": "${file:/secrets:token}",
    "consumer.override.sasl.jaas.config": "password-of-bob",
}


class Bench:
    def __init__(self) -> None:
        self.deep: list[Config] = []
        extras = Extras(deep_check=self._deep_check, resolve=self._resolved)
        worker = {"key.converter": JSON, "value.converter": JSON, "value.converter.schemas.enable": "false"}
        self.service = ConnectorService("w:1", MemoryStore(), worker, extras=extras)
        self.service.connectors.use(FakeManagers())
        self.service.create("sink", CONFIG)
        self.deep.clear()

    def _resolved(self, config: Config) -> dict[str, str]:
        return {
            key: value.replace("${file:/secrets:token}", "tok-en-of-file") for key, value in config.items()
        }

    def _deep_check(self, config: Config) -> list[Problem]:
        self.deep.append(config)
        key = "iceberg.catalog.s3.secret-access-key"
        return [Problem(key, f"refused {config[key]}")] if config.get("tasks.max") == "9" else []

    def report(self, changes: dict[str, str | None], *, deep: bool = False) -> HiddenReport:
        return self.service.validate_edited(changes, "sink", deep=deep)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.service.close()


def errors(found: HiddenReport) -> dict[str, tuple[str, ...]]:
    return {one.name: one.errors for one in found.report.settings if one.errors}


def test_changes_are_merged_with_what_is_stored(bench: Bench) -> None:
    assert errors(bench.report({})) == {}
    (told,) = errors(bench.report({"iceberg.tables": None, "iceberg.table": "db.t"}))["iceberg.table"]
    assert "did you mean 'iceberg.tables'?" in told
    (stranger,) = [
        one for one in bench.report({"iceberg.table": "x"}).report.settings if one.name == "iceberg.table"
    ]
    assert stranger.recommended == ("iceberg.tables",)


def test_typing_opens_nothing_and_saving_does(bench: Bench) -> None:
    bench.report({"tasks.max": "2"})
    assert bench.deep == []
    bench.report({"tasks.max": "2"}, deep=True)
    assert len(bench.deep) == 1


def test_no_secret_leaves_and_placeholders_are_shown(bench: Bench) -> None:
    found = bench.report({"tasks.max": "9"}, deep=True)
    assert errors(found) == {"iceberg.catalog.s3.secret-access-key": ("refused [hidden]",)}
    whole = repr(found)
    for secret in ("hunter22", "sesame", "tok-en-of-file", "password-of-bob"):
        assert secret not in whole
    shown = {one.name: one.value for one in found.report.settings if one.value} | dict(found.others)
    assert shown["iceberg.catalog.uri"] == "http://alice:[hidden]@cat:8181"
    assert shown["iceberg.catalog.token"] == "${file:/secrets:token}"
    assert set(found.secrets) >= {"iceberg.catalog.s3.secret-access-key", "iceberg.catalog.token"}


def test_keys_that_the_report_does_not_know_are_told_and_survive(bench: Bench) -> None:
    others = bench.report({}).others
    assert others["iceberg.catalog.type"] == "rest"
    bench.service.patch_config("sink", {"tasks.max": "2"})
    assert bench.service.config("sink") == {**CONFIG, "tasks.max": "2"}


@pytest.mark.parametrize("value", ["[hidden]", "http://alice:[hidden]@other:8181"])
def test_a_mask_never_travels_back(value: str) -> None:
    with pytest.raises(ConfigError, match="stands for a secret that is not shown"):
        edited(CONFIG, {"iceberg.catalog.uri": value})


def test_a_connector_keeps_its_name() -> None:
    assert edited(CONFIG, {"name": "sink", "topics": None}) == {
        key: value for key, value in CONFIG.items() if key != "topics"
    }
    with pytest.raises(ConfigError, match="the name 'sink' cannot change"):
        edited(CONFIG, {"name": "other"})


def test_a_class_that_nobody_knows_is_an_error_at_its_key(bench: Bench) -> None:
    found = bench.service.validate_edited({"connector.class": "Nothing"}, deep=False)
    assert list(errors(found)) == ["connector.class"]
    assert list(errors(bench.service.validate_edited({}, deep=False))) == ["connector.class"]
