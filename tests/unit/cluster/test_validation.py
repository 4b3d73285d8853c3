"""Which connector configs we run, and what we say about the others."""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Collection

import pytest

from icestream.api.connector_settings import SINK_CONNECTOR
from icestream.api.errors import Problem, UnknownConnectorClass
from icestream.cluster.configs.checks import UNKNOWN_KEYS
from icestream.cluster.configs.validation import Validation, validate_connector, with_worker_defaults

JSON = "org.apache.kafka.connect.json.JsonConverter"
SIMPLE_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
KAFKA = "org.apache.kafka.connect.transforms."
WORKER = {"key.converter": JSON, "value.converter": JSON, "value.converter.schemas.enable": "false"}
GOOD = {
    "name": "sink",
    "connector.class": "io.tabular.iceberg.connect.IcebergSinkConnector",
    "tasks.max": "2",
    "topics": "apilogs",
    "iceberg.tables": "streaming.apilogs",
    "iceberg.tables.auto-create-enabled": "false",
    "iceberg.tables.evolve-schema-enabled": "true",
    "iceberg.catalog.type": "rest",
    "iceberg.catalog.uri": "http://nginx-dest:9000/_iceberg",
    "iceberg.catalog.rest.sigv4-enabled": "true",
    "iceberg.control.topic": "control-iceberg",
    "iceberg.control.commit.interval-ms": "10000",
    "iceberg.control.commit.timeout-ms": "60000",
}


def validate(**changes: str | None) -> Validation:
    """GOOD with changes; underscores stand for dots, two for a hyphen."""
    renamed = {key.replace("__", "-").replace("_", "."): value for key, value in changes.items()}
    return validate_connector({**GOOD, **renamed}, WORKER)


def messages(validation: Validation) -> str:
    return "\n".join(problem.message for problem in validation.problems)


def test_the_demo_config_is_taken_as_it_is() -> None:
    found = validate()
    assert found.problems == ()
    assert found.warnings == ()


@pytest.mark.parametrize(
    "name",
    [
        "io.tabular.iceberg.connect.IcebergSinkConnector",
        "org.apache.iceberg.connect.IcebergSinkConnector",
        "IcebergSinkConnector",
        "IcebergSink",
    ],
)
def test_every_name_of_the_class_is_known(name: str) -> None:
    assert validate(connector_class=name).problems == ()


def test_several_tables_are_taken() -> None:
    assert validate(iceberg_tables="db.a, db.b").problems == ()


def test_an_unknown_class_lists_what_there_is() -> None:
    with pytest.raises(UnknownConnectorClass, match=r"matches Foo, available connectors are: .*org\.apache"):
        validate(connector_class="Foo")


def test_a_config_without_class_is_shown_without_its_secrets() -> None:
    with pytest.raises(UnknownConnectorClass) as caught:
        validate_connector({"name": "a", "iceberg.catalog.s3.secret-access-key": "hush"}, WORKER)
    assert "contains no connector type" in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("transforms", "a", 'Missing required configuration "transforms.a.type"'),
        ("transforms", "a,a", "Invalid value [a, a] for configuration transforms: Duplicate alias provided."),
        ("predicates", "a", 'Missing required configuration "predicates.a.type"'),
        ("iceberg.tables.dynamic-enabled", "true", "names tables by records and 'iceberg.tables' names them"),
        ("iceberg.tables.route-template", "lake.${topik}", "a placeholder that there is not"),
        ("iceberg.tables.route-field", "a..b", "is not a path of fields"),
        ("iceberg.table.streaming.apilogs.route-regex", "(", "route-regex"),
        ("value.converter", "io.apicurio.registry.utils.converter.AvroConverter", "not supported by this"),
        ("value.converter", SIMPLE_HEADERS, "does not implement the Converter interface"),
        ("tasks.max", "x", "Invalid value x for configuration tasks.max: Not a number of type INT"),
        ("tasks.max", "0", "Value must be at least 1"),
        ("errors.tolerance", "some", "String must be one of: none, all"),
        ("topics", "", "Must configure one of topics or topics.regex"),
        ("topics.regex", "a.*", "mutually exclusive"),
        ("errors.deadletterqueue.topic.name", "apilogs", "The DLQ topic 'apilogs' may not be included"),
        ("iceberg.tables", "db.a,apilogs", "names 'apilogs' without a namespace"),
        ("iceberg.tables", "", "'iceberg.tables' is missing"),
        ("name", "a\x01b", "may not contain control sequences"),
        ("tasks.max", "2147483647", "is more than this worker allows; set at most 1000, or raise icestream."),
    ],
)
def test_what_cannot_run_is_refused_with_the_reason(key: str, value: str, reason: str) -> None:
    assert reason in messages(validate_connector({**GOOD, key: value}, WORKER))


@pytest.mark.parametrize(
    "pattern", ["a{99999999999}", "(" * 9_000, "[" * 9_000, "(a)\\1", "a(?!b)", "a" * 20_000]
)
def test_patterns_that_cannot_run_are_refused_with_a_sentence(pattern: str) -> None:
    router = {
        "transforms": "r",
        "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.r.regex": pattern,
        "transforms.r.replacement": "x",
        "transforms.r.predicate": "p",
        "predicates": "p",
        "predicates.p.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "predicates.p.pattern": pattern,
    }
    config = {key: value for key, value in GOOD.items() if key != "topics"}
    found = validate_connector({**config, **router, "topics.regex": pattern}, WORKER).problems
    refused = {problem.key for problem in found if "Invalid regex" in problem.message}
    assert refused == {"topics.regex", "transforms.r.regex", "predicates.p.pattern"}


def test_a_worker_may_allow_more_or_fewer_tasks() -> None:
    many = {**GOOD, "tasks.max": "1001"}
    assert validate_connector(many, {**WORKER, "icestream.tasks.limit": "5000"}).problems == ()
    assert "set at most 4" in messages(validate_connector(many, {**WORKER, "icestream.tasks.limit": "4"}))


def test_all_problems_come_at_once() -> None:
    found = validate_connector({"connector.class": "IcebergSink", "tasks.max": "x"}, {})
    assert {problem.key for problem in found.problems} == {
        "name",
        "tasks.max",
        "topics",
        "topics.regex",
        "value.converter",
        "iceberg.tables",
        "iceberg.catalog",
    }


def test_null_is_no_value() -> None:
    found = validate(tasks_max=None)
    assert messages(found).splitlines() == [
        "Invalid value null for configuration tasks.max: Value must be non-null",
        "Null value can not be supplied as the configuration value.",
    ]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("iceberg.tables.evolve-schema-enable", "iceberg.tables.evolve-schema-enabled"),
        ("value.converter.schema.enable", "value.converter.schemas.enable"),
        ("consumer.overide.max.poll.records", "consumer.override.*"),
        ("topic", "topics"),
        ("iceberg.table.streaming.apilogs.partition-bye", "iceberg.table.streaming.apilogs.partition-by"),
    ],
)
def test_a_typo_is_an_error_with_a_suggestion(key: str, meant: str) -> None:
    found = validate_connector({**GOOD, key: "x"}, WORKER)
    assert messages(found) == f"Unknown configuration '{key}'; did you mean '{meant}'?"


FLATTEN = {"transforms": "a", "transforms.a.type": f"{KAFKA}Flatten$Value"}


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("transforms.a.delimeter", "transforms.a.delimiter"),
        ("transforms.a.predicat", "transforms.a.predicate"),
        ("key.converter.schema.enable", "key.converter.schemas.enable"),
    ],
)
def test_a_typo_is_looked_for_in_the_class_that_its_prefix_means(key: str, meant: str) -> None:
    found = validate_connector({**GOOD, **FLATTEN, key: "x"}, WORKER)
    assert messages(found) == f"Unknown configuration '{key}'; did you mean '{meant}'?"


def test_a_field_that_was_to_be_hidden_under_an_old_name_is_not_let_through() -> None:
    """Kafka Connect 4 ignores blacklist, and the field is seen."""
    old = {
        "transforms": "a",
        "transforms.a.type": f"{KAFKA}ReplaceField$Value",
        "transforms.a.blacklist": "card",
    }
    assert messages(validate_connector({**GOOD, **old}, WORKER)) == (
        "Unknown configuration 'transforms.a.blacklist'; did you mean 'transforms.a.exclude'?"
    )


@pytest.mark.parametrize(
    "strange",
    [
        {"transforms.b.type": f"{KAFKA}Flatten$Value", "transforms.b.delimiter": "_"},
        {"transforms.a.anything.at.all": "x"},
        {"predicates.a.type": "x"},
        {"key.converter": "StringConverter", "key.converter.schemas.enable": "false"},
    ],
)
def test_keys_that_no_class_reads_are_warnings(strange: dict[str, str]) -> None:
    found = validate_connector({**GOOD, **FLATTEN, **strange}, WORKER)
    unread = [key for key in strange if key != "key.converter"]
    assert found.problems == ()
    assert found.warnings[: len(unread)] == tuple(
        f"'{key}' is not a known configuration and has no effect" for key in unread
    )


def test_the_transforms_own_opinion_is_heard() -> None:
    """Kafka Connect takes the config, and the task fails."""
    config = {**GOOD, "transforms": "a", "transforms.a.type": f"{KAFKA}InsertField$Value"}
    (problem,) = validate_connector(config, WORKER).problems
    assert problem.key.startswith("transforms.a.")
    assert problem.message == "No field insertion configured"


def test_any_other_unknown_key_is_a_warning() -> None:
    found = validate_connector({**GOOD, "my.own.note": "x"}, WORKER)
    assert found.problems == ()
    assert found.warnings[0] == "'my.own.note' is not a known configuration and has no effect"


def test_a_worker_that_refuses_unknown_keys_leaves_connectors_no_choice() -> None:
    strict = {**WORKER, "icestream.unknown.keys": "error"}
    for choice in ({}, {"icestream.unknown.keys": "accept"}):
        (problem,) = validate_connector({**GOOD, "my.own.note": "x", **choice}, strict).problems
        assert (problem.key, problem.message) == (
            "my.own.note",
            "Unknown configuration 'my.own.note'; remove it",
        )


def test_the_user_chooses_what_unknown_keys_mean() -> None:
    strict = validate_connector({**GOOD, "my.own.note": "x", "icestream.unknown.keys": "error"}, WORKER)
    lenient = validate_connector({**GOOD, "topic": "x", "icestream.unknown.keys": "accept"}, WORKER)
    assert "Unknown configuration 'my.own.note'" in messages(strict)
    assert lenient.problems == ()
    assert "did you mean 'topics'?" in lenient.warnings[0]
    for word in ("error", "typos", "accept"):
        assert SINK_CONNECTOR.parse({**GOOD, UNKNOWN_KEYS: word})[UNKNOWN_KEYS] == word


def test_a_key_without_effect_is_a_warning() -> None:
    found = validate_connector({**GOOD, "iceberg.control.group-id-prefix": "cg-"}, WORKER)
    assert found.problems == ()
    assert found.warnings[0].startswith("'iceberg.control.group-id-prefix' has no effect: ")


def test_what_the_config_points_at_is_looked_at_last() -> None:
    seen: list[str] = []

    def deep(config: object) -> list[Problem]:
        seen.append("deep")
        return [Problem("iceberg.tables", "no such table")]

    assert validate_connector({**GOOD, "tasks.max": "x"}, WORKER, deep).problems[0].key == "tasks.max"
    assert seen == []
    assert validate_connector(GOOD, WORKER, deep).problems[0].message == "no such table"


def test_converters_come_from_the_worker_unless_named() -> None:
    inherited = with_worker_defaults(GOOD, WORKER)
    assert inherited["value.converter.schemas.enable"] == "false"
    own = with_worker_defaults({**GOOD, "value.converter": "X"}, WORKER)
    assert "value.converter.schemas.enable" not in own
    assert own["key.converter"] == JSON


def test_where_a_new_connector_begins_is_the_workers_unless_it_says_otherwise() -> None:
    key = "consumer.override.auto.offset.reset"
    worker = {"consumer.auto.offset.reset": "latest"}
    assert with_worker_defaults({}, worker)[key] == "latest"
    assert with_worker_defaults({key: "earliest"}, worker)[key] == "earliest"
    assert key not in with_worker_defaults({}, {})


AVRO = "io.confluent.connect.avro.AvroConverter"


def test_converters_with_a_registry_want_its_address() -> None:
    missing = validate_connector({**GOOD, "value.converter": AVRO}, WORKER)
    assert [problem.key for problem in missing.problems] == ["value.converter.schema.registry.url"]
    url = {"value.converter.schema.registry.url": "http://127.0.0.1:8081"}
    assert validate_connector({**GOOD, "value.converter": AVRO, **url}, WORKER).problems == ()


def test_a_key_of_a_converter_without_effect_is_a_warning() -> None:
    more = {"value.converter": AVRO, "value.converter.schema.registry.url": "http://127.0.0.1:8081"}
    found = validate_connector({**GOOD, **more, "value.converter.max.retries": "5"}, WORKER)
    assert found.problems == ()
    assert found.warnings[0].startswith("'value.converter.max.retries' has no effect: ")


def test_a_converter_of_records_only_is_none_for_headers() -> None:
    found = validate_connector({**GOOD, "header.converter": AVRO}, WORKER)
    assert messages(found).endswith(f"Class class {AVRO} does not implement the HeaderConverter interface")


def test_a_json_schema_is_read_with_the_config() -> None:
    assert validate_connector({**GOOD, "value.schema.inline": '{"type": "object"}'}, WORKER).problems == ()
    (problem,) = validate_connector({**GOOD, "value.schema.inline": '{"type": 7}'}, WORKER).problems
    assert problem.key == "value.schema.inline"


def test_tasks_times_the_size_of_the_config_has_a_limit() -> None:
    large = {**GOOD, **{f"iceberg.catalog.k{number}": "v" * 1000 for number in range(500)}}
    (problem,) = validate_connector({**large, "tasks.max": "1000"}, WORKER).problems
    assert problem.key == "tasks.max" and "makes as many copies of this config" in problem.message
    assert validate_connector({**large, "tasks.max": "100"}, WORKER).problems == ()


def test_typos_beside_thousands_of_known_keys_take_no_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def get_close_matches(word: str, known: Collection[str], n: int, cutoff: float) -> list[str]:
        compared.append(len(known))
        return []

    monkeypatch.setattr(difflib, "get_close_matches", get_close_matches)
    tables = ",".join(f"n.t{number}" for number in range(5000))
    typos = {f"iceberg.table.n.t{number}.comit-branch": "x" for number in range(4900)}
    validate_connector({**GOOD, "iceberg.tables": tables, **typos}, WORKER)
    assert 0 < sum(compared) < 300_000


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("icestream.job.manager", "kubernetes", "a pod for each job is made by the operator"),
        ("icestream.job.manager.driver.memory", "9g", "set at most 8g"),
        ("icestream.job.manager.heartbeat.timeout.ms", "1", "Value must be at least 1000"),
    ],
)
def test_a_place_that_a_job_cannot_have_is_refused(key: str, value: str, said: str) -> None:
    found = validate_connector({**GOOD, key: value}, WORKER)
    assert [problem.key for problem in found.problems] == [key]
    assert said in messages(found)


def test_a_process_for_a_job_is_taken() -> None:
    assert validate_connector({**GOOD, "icestream.job.manager": "process"}, WORKER).problems == ()


S3 = "io.confluent.connect.s3.S3SinkConnector"
DELTA = "io.icestream.connect.delta.DeltaSinkConnector"
JDBC_SINK = "io.confluent.connect.jdbc.JdbcSinkConnector"
JDBC_SOURCE = "io.confluent.connect.jdbc.JdbcSourceConnector"


@pytest.mark.parametrize(
    ("class_name", "keys", "module", "extra"),
    [
        (S3, {}, "boto3", "s3"),
        (DELTA, {}, "deltalake", "delta"),
        (JDBC_SINK, {"connection.url": "jdbc:postgresql://h/d"}, "psycopg2", "postgres"),
        (JDBC_SOURCE, {"connection.url": "jdbc:postgresql://h/d"}, "psycopg2", "postgres"),
        (JDBC_SOURCE, {"connection.url": "jdbc:mariadb://h/d"}, "pymysql", "mysql"),
    ],
)
def test_a_package_that_the_worker_lacks_is_named_with_its_extra(
    class_name: str, keys: dict[str, str], module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else real(name))
    found = validate_connector({"name": "a", "connector.class": class_name, **keys}, {})
    assert (
        f"{class_name} needs Python's '{module}', which this worker lacks; install it with: "
        f"pip install 'icestream[{extra}]', and start the worker again"
    ) in messages(found)


@pytest.mark.parametrize(
    ("class_name", "keys"),
    [
        (S3, {"store.url": "file:///srv/lake"}),
        (JDBC_SINK, {"connection.url": "jdbc:sqlite:a.db"}),
        (JDBC_SINK, {"connection.url": "jdbc:oracle:thin"}),
    ],
)
def test_a_config_that_does_without_a_package_does_not_ask_for_it(
    class_name: str, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = validate_connector({"name": "a", "connector.class": class_name, **keys}, {})
    assert "pip install" not in messages(found)
