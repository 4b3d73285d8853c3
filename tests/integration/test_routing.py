"""Records that choose their tables, through a real worker with Spark: by pattern, by name and by template."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import Producer

from icestream.connectors.iceberg.named_tables import tables_of_job
from tests.integration.worker_world import SCHEMA, World, eventually
from tests.long_form import sized


def send(world: World, topic: str, values: Sequence[Mapping[str, Any]]) -> None:
    producer = Producer({"bootstrap.servers": world.bootstrap})
    for at, value in enumerate(values):
        producer.produce(topic, json.dumps(value).encode(), partition=at % 3)
    assert producer.flush(60) == 0


def ids(world: World, table: str, branch: str = "main") -> list[int]:
    found = world.catalog.load_table(table)
    if branch not in found.refs():
        return []
    return sorted(found.scan().use_ref(branch).to_arrow()["id"].to_pylist())


def config(world: World, name: str, **more: str) -> dict[str, str]:
    keys = {f"iceberg.tables.{key.replace('_', '-')}": value for key, value in more.items()}
    return {**world.config(name), "errors.tolerance": "all", **keys}


def test_patterns_on_a_field_and_a_branch(world: World) -> None:
    world.topic("patterned")
    for table in ("ns.pat_a", "ns.pat_b"):
        world.catalog.create_table(table, SCHEMA)
    given = {
        **config(world, "patterned", route_field="kind"),
        "iceberg.tables": "ns.pat_a,ns.pat_b",
        "iceberg.table.ns.pat_a.route-regex": "a|both",
        "iceberg.table.ns.pat_b.route-regex": "b.*",
        "iceberg.table.ns.pat_b.commit-branch": "staging",
    }
    world.client.create("patterned", given)
    kinds = ["a", "b", "both", "none"]
    send(world, "patterned", [{"id": n, "kind": kinds[n % 4]} for n in range(40)])
    eventually(lambda: ids(world, "ns.pat_a") == [n for n in range(40) if n % 4 in (0, 2)])
    eventually(lambda: ids(world, "ns.pat_b", "staging") == [n for n in range(40) if n % 4 in (1, 2)])
    assert ids(world, "ns.pat_b") == []
    world.client.delete("patterned")


def test_names_in_a_field(world: World) -> None:
    world.topic("named")
    for table in ("ns.name_0", "ns.name_1"):
        world.catalog.create_table(table, SCHEMA)
    given = {**config(world, "named", dynamic_enabled="true", route_field="to.table"), "iceberg.tables": ""}
    world.client.create("named", given)
    send(world, "named", [{"id": n, "to": {"table": f"NS.Name_{n % 3}"}} for n in range(30)])
    for number in range(2):
        eventually(lambda number=number: ids(world, f"ns.name_{number}") == list(range(number, 30, 3)))
    world.client.delete("named")


@pytest.mark.parametrize("tables", sized(30, 200))
def test_a_template_whose_tables_are_created(tables: int, world: World) -> None:
    """Many tables of one topic: a batch commits those that got rows."""
    name = f"templated_{tables}"
    world.topic(name)
    template = "${topic}.t_${value.who}"
    given = {
        **config(world, name, route_template=template, auto_create_enabled="true"),
        "iceberg.tables": "",
    }
    world.client.create(name, given)
    send(world, name, [{"id": n, "who": f"w{n % tables}"} for n in range(3 * tables)])
    eventually(lambda: len(tables_of_job(world.catalog, name)) == tables)
    eventually(lambda: ids(world, f"{name}.t_w7") == [7, 7 + tables, 7 + 2 * tables])
    before = len(world.catalog.load_table(f"{name}.t_w7").snapshots())
    send(world, name, [{"id": 1000 + n, "who": "w8"} for n in range(5)])
    eventually(lambda: len(ids(world, f"{name}.t_w8")) == 8)
    assert len(world.catalog.load_table(f"{name}.t_w7").snapshots()) == before
    world.client.delete(name)
