"""`icestream sql` without Spark: where the catalogs come from, what is printed, what is refused."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import Row

from icestream.api.connector import SparkCatalog
from icestream.cli import main, sql
from icestream.embedded import jars
from icestream.java_artifacts import root
from icestream.pipeline import sql as pipeline_sql
from icestream.pipeline.sql import Result

CONFIG = {
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "iceberg.catalog": "demo",
    "iceberg.catalog.type": "jdbc",
    "iceberg.catalog.uri": "jdbc:sqlite:/data/catalog.db",
}
ANSWER = Result(
    "SELECT",
    ("n", "text", "row", "bytes"),
    ((1, "a [b]", Row(x=1, y=[Decimal("1.50")]), bytearray(b"\x01\xff")), (None, "c", None, None)),
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would have been asked of Spark; the answer is always the same."""
    calls: list[Any] = []

    def results(configs: Sequence[Any], statements: str, conf: dict[str, str]) -> Iterator[Result]:
        calls.append((list(configs), statements, conf))
        yield ANSWER

    monkeypatch.setattr(sql, "results", results)
    return calls


@pytest.fixture
def connector(tmp_path: Path) -> str:
    file = tmp_path / "sink.json"
    file.write_text(json.dumps({"name": "sink", "config": CONFIG}))
    return str(file)


def run(*arguments: str) -> str:
    outcome = CliRunner().invoke(sql.sql, arguments, catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_a_table_shows_values_as_people_write_them(asked: list[Any], connector: str) -> None:
    shown = run("--config", connector, "SELECT 1", "--spark", "spark.master=local[1]")
    assert [line.split() for line in shown.splitlines()[:3]] == [
        ["n", "text", "row", "bytes"],
        ["1", "a", "[b]", '{"x":', "1,", '"y":', '["1.50"]}', "01ff"],
        ["NULL", "c", "NULL", "NULL"],
    ]
    assert "2 rows" in shown
    ((configs, statements, conf),) = asked
    assert (configs[0]["iceberg.catalog"], statements, conf) == (
        "demo",
        "SELECT 1",
        {"spark.master": "local[1]"},
    )


def test_json_is_one_line_for_each_statement(asked: list[Any], connector: str) -> None:
    (line,) = run("--config", connector, "-o", "json", "SELECT 1").splitlines()
    assert json.loads(line)["rows"][0] == {
        "n": 1,
        "text": "a [b]",
        "row": {"x": 1, "y": ["1.50"]},
        "bytes": "01ff",
    }


def test_properties_files_do_as_well(asked: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "sink.properties"
    file.write_text("name=sink\n" + "".join(f"{key}={value}\n" for key, value in CONFIG.items()))
    run("--config", str(file), "SELECT 1")
    assert asked[0][0][0]["iceberg.catalog.uri"] == "jdbc:sqlite:/data/catalog.db"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["SELECT 1", "--url", "http://127.0.0.1:9"], "no worker answers at http://127.0.0.1:9"),
        (["SELECT 1", "--spark", "master=local"], "'master=local' is not of the form spark.key=value"),
        (["SELECT 1", "--config", "/nowhere.json"], "/nowhere.json"),
    ],
)
def test_what_cannot_be_run_is_one_sentence(
    arguments: list[str], sentence: str, asked: list[Any], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["sql", *arguments]) != 0
    shown = capfd.readouterr().err
    assert sentence in shown
    assert shown.count("\n") == 1
    assert not asked


def test_a_time_is_plain_text() -> None:
    result = Result("", ("t",), ((datetime(2026, 11, 15, 10, 0),),))
    assert json.dumps(sql.as_records(result), default=str) == '[{"t": "2026-11-15 10:00:00"}]'


def test_jars_that_the_lock_file_lacks_are_left_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "fetch_files", lambda names: [Path("/jars") / name for name in names])
    assert sql.jar_settings([CONFIG]) == {"spark.jars": "/jars/spark-iceberg,/jars/spark-sqlite"}
    coordinates = [str(root("spark-iceberg")), "org.example:another-catalog:1.0"]
    catalog = SparkCatalog("demo", "org.example.Catalog", {}, "", coordinates)
    monkeypatch.setattr(pipeline_sql, "spark_catalogs", lambda configs: [catalog])
    assert sql.jar_settings([CONFIG]) == {
        "spark.jars": "/jars/spark-iceberg",
        "spark.jars.packages": "org.example:another-catalog:1.0",
    }
