"""Which tables records are for: patterns, names and templates, over columns of every kind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from icestream.connectors.iceberg.settings import ROUTES, warnings
from icestream.pipeline.record_path import RecordSettings, record_path_from
from icestream.tables.routing.router import Routed, Router
from icestream.tables.routing.routes import RoutePlan, name_problem, parsed_template
from tests.unit.pipeline.batches import CONFIG, chunk


def routed(plan: RoutePlan, values: Sequence[Any], config: Mapping[str, str] | None = None) -> list[Any]:
    """For each record its tables, or why it fails, or None if it matches nothing."""
    path = record_path_from(RecordSettings.of({**CONFIG, **(config or {})}))
    prepared = path.prepare(chunk([json.dumps(value).encode() for value in values], 0))
    assert not prepared.failed
    router = Router(plan)
    found: list[Any] = [None] * len(values)
    for group in prepared.records:
        one: Routed = router.route(group)
        for table, rows in one.tables.items():
            for row in rows.tolist():
                found[group.rows[row]] = sorted([*(found[group.rows[row]] or []), table])
        for row, why in one.failed.items():
            found[group.rows[row]] = why.reason
        seen = [*(row for rows in one.tables.values() for row in rows.tolist()), *one.failed]
        assert sorted({*seen, *one.unmatched.tolist()}) == list(range(len(group)))
    return found


BY_PATTERN = RoutePlan(("kind",), {"db.a": "a.*|both", "db.b": "b|both", "db.n": "[0-9.E]+|true"})


def test_a_pattern_matches_the_whole_value_as_java_prints_it() -> None:
    values = ["a", "abc", "xa", "b", "bb", "both", 7, 1.5, 1e20, True, None]
    assert routed(BY_PATTERN, [{"kind": value} for value in values]) == [
        *(["db.a"], ["db.a"], None, ["db.b"], None, ["db.a", "db.b"]),
        *(["db.n"], ["db.n"], ["db.n"], ["db.n"], None),
    ]


def test_a_missing_field_an_object_and_a_list_match_no_pattern() -> None:
    assert routed(BY_PATTERN, [{}, {"kind": {"x": 1}}, {"kind": ["a"]}, {"kind": "a"}]) == [
        *(None, None, None),
        ["db.a"],
    ]


def test_unmatched_records_are_rejected_on_request() -> None:
    plan = RoutePlan(("kind",), {"db.a": "a"}, rejects_unmatched=True)
    found = routed(plan, [{"kind": "a"}, {"kind": "b"}, {}])
    assert found == [["db.a"], *["field 'kind' matches the route-regex of no table"] * 2]


def test_the_field_may_be_deep_and_changed_by_transforms() -> None:
    plan = RoutePlan(("route", "to"), {"db.a": "a"})
    values = [{"route": {"to": "a"}}, {"route": {"to": "b"}}, {"route": 5}, {"route": None}]
    assert routed(plan, values) == [["db.a"], None, None, None]
    renamed = {
        "transforms": "rename",
        "transforms.rename.type": "org.apache.kafka.connect.transforms.ReplaceField$Value",
        "transforms.rename.renames": "old:kind",
    }
    assert routed(BY_PATTERN, [{"old": "a"}, {"old": "z"}], renamed) == [["db.a"], None]


def test_the_field_may_have_a_schema() -> None:
    config = {"value.converter.schemas.enable": "true"}
    inner = {
        "type": "struct",
        "field": "route",
        "optional": True,
        "fields": [{"field": "to", "type": "string", "optional": True}],
    }
    counts = {
        "type": "map",
        "field": "tags",
        "keys": {"type": "string"},
        "values": {"type": "string"},
        "optional": True,
    }
    schema = {"type": "struct", "fields": [inner, counts]}
    values = [
        {"schema": schema, "payload": payload}
        for payload in (
            {"route": {"to": "a"}, "tags": {"t": "b"}},
            {"route": {"to": None}, "tags": {}},
            {"route": None, "tags": None},
        )
    ]
    assert routed(RoutePlan(("route", "to"), {"db.a": "a"}), values, config) == [["db.a"], None, None]
    assert routed(RoutePlan(("tags", "t"), {"db.a": "b"}), values, config) == [["db.a"], None, None]
    assert routed(RoutePlan(("nothing",), {"db.a": "b"}), values, config) == [None, None, None]


def test_a_name_is_lower_cased_and_what_is_no_name_fails() -> None:
    values = ["DB.One", "db.ümlaut_1-x", "one", "db.", "db..x", "db./../x", "db.a b", "", 7, None, {"x": 1}]
    found = routed(RoutePlan(("table",)), [{"table": value} for value in values] + [{}])
    assert found[:2] == [["db.one"], ["db.ümlaut_1-x"]]
    assert "has no namespace" in found[2]
    assert all("no table can have this name" in why for why in found[3:9])
    assert all("is missing, null or no plain value" in found[at] for at in (9, 11))
    assert found[10] == "field 'table' is an object or a list, and no name of a table"


def test_a_template_takes_the_topic_its_parts_and_fields_and_adds_no_part_to_the_name() -> None:
    by_topic = RoutePlan(template=parsed_template("lake.${topic}"))
    assert routed(by_topic, [{}, {}]) == [["lake.events"]] * 2
    dotted = {
        "transforms": "t",
        "transforms.t.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.t.regex": ".*",
        "transforms.t.replacement": "server.Sales.Orders",
    }
    assert routed(by_topic, [{}], dotted) == [["lake.server_sales_orders"]]
    parts = RoutePlan(template=parsed_template("${topic.2}.x_${topic.3}_${value.of.who}"))
    assert routed(parts, [{"of": {"who": "A.b"}}, {"of": {}}, {"of": {"who": "/"}}], dotted) == [
        ["sales.x_orders_a_b"],
        "field 'of.who', which names the table, is missing, null or no plain value",
        "no table can have this name: 'sales.x_orders_/' has a part that is not made of letters, digits, '_' "
        "and '-'",
    ]
    assert routed(parts, [{"of": {"who": "a"}}]) == [
        "topic 'events' has no part 2, which the route template asks for"
    ]


@pytest.mark.parametrize(
    "text", ["orders", "lake.${field}", "lake.${topic:1}", "lake.${topic", "lake.$topic", "a b.${topic}", "."]
)
def test_a_template_that_names_no_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"placeholder|no table can be named like that"):
        parsed_template(text)


def test_long_and_deep_names_are_refused() -> None:
    assert "characters" in (name_problem("a." + "x" * 300) or "")
    assert "parts" in (name_problem(".".join("abcdefghijkl")) or "")
    assert "bytes" in (name_problem("a." + "é" * 200) or "")
    assert "none for tables" in (name_problem("a._log", reserved={"_log"}) or "")
    assert name_problem("a.b.c") is None


def test_settings_that_contradict_each_other_are_told() -> None:
    def told(tables: Sequence[str] = (), **config: str) -> list[str]:
        keys = {f"iceberg.tables.{key.replace('_', '-')}": value for key, value in config.items()}
        return [problem.message for problem in ROUTES.problems(keys, tables)]

    assert told(["db.t"]) == []
    assert "remove one" in told(["db.t"], dynamic_enabled="true", route_field="f")[0]
    assert "needs 'iceberg.tables.route-field'" in told(dynamic_enabled="true")[0]
    assert "cannot be used together" in told(route_template="a.${topic}", route_field="f")[0]
    assert "not a path" in told(route_field="a..b")[0]
    assert "cannot be used" in told(route_template="a.${topik}")[0]
    bad = {"iceberg.tables.route-field": "f", "iceberg.table.db.t.route-regex": "(?<=x)"}
    assert [problem.key for problem in ROUTES.problems(bad, ["db.t"])] == ["iceberg.table.db.t.route-regex"]


def test_a_table_without_a_pattern_is_told_of() -> None:
    config = {"iceberg.tables.route-field": "f", "iceberg.table.db.a.route-regex": "a"}
    assert ["db.b" in warning for warning in ROUTES.warnings(config, ["db.a", "db.b"])] == [True]
    del config["iceberg.tables.route-field"]
    assert "every table gets every record" in ROUTES.warnings(config, ["db.a", "db.b"])[0]
    assert ROUTES.plan(config, ["db.a"]) is None


def test_deletions_that_name_no_table_are_told_when_the_config_is_checked() -> None:
    upserts = {"iceberg.tables.upsert-mode-enabled": "true"}
    by_field = {"iceberg.tables.dynamic-enabled": "true", "iceberg.tables.route-field": "to"}
    by_topic = {"iceberg.tables.route-template": "lake.${topic}"}
    assert "delete nothing" in "".join(warnings({**upserts, **by_field}))
    for config in (by_field, {**upserts, **by_topic}, {**upserts, "iceberg.tables": "a.b"}):
        assert "delete nothing" not in "".join(warnings(config))
