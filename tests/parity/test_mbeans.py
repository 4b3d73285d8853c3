"""The MBeans of a real Kafka Connect 4.3.1 that runs a source and a sink, and our table of its metrics."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from prometheus_client.parser import text_string_to_metric_families

from icestream.metrics.dialects.attributes import GROUPS, TRANSACTION_SIZES
from icestream.metrics.dialects.confluent import confluent_shapes
from tests.parity.conftest import Sides
from tests.parity.sending import Side, send
from tests.parity.sides import clear
from tests.parity.table import GET, SINK, SOURCE, create

pytestmark = [pytest.mark.slow, pytest.mark.network]

_PATIENCE_S: Final = 120.0
_DOMAIN: Final = "kafka.connect"
_ROOT: Final = Path(__file__).parents[2]
Attribute = tuple[str, tuple[str, ...], str]
"""Type, names of the tags, name."""

_SMT: Final = {
    "transforms": "note",
    "transforms.note.type": "org.apache.kafka.connect.transforms.InsertHeader",
    "transforms.note.header": "by",
    "transforms.note.value.literal": "test",
    "transforms.note.predicate": "any",
    "predicates": "any",
    "predicates.any.type": "org.apache.kafka.connect.transforms.predicates.HasHeaderKey",
    "predicates.any.name": "by",
}

ONLY_THEIRS: Final = {
    r"app-info\(\)|app-info\(id\)": "the same facts again, under names of older versions",
    r"kafka-metrics-count.*": "how many metrics there are",
    r"connect-node-metrics.*": "the worker's client, broker by broker: no dashboard asks",
    r"connect-metrics.*(-reauthentication|-no-reauth).*|connect-metrics.*reauthentication-latency-.*": (
        "logging in again on an open connection, which the client does not do"
    ),
    r"connect-metrics.*(select-|io-time-|io-wait-time-).*": "the client does not measure its event loop",
}
"""What Kafka Connect has and our table has not, and why."""
ONLY_OURS: Final = {
    f"source-task-metrics(connector,task) {one}": "there only for sources that are exactly-once"
    for one in TRANSACTION_SIZES
}
UNKNOWN: Final = {
    r"connect-metrics\(client-id\) .*": "of the group's client only what it counts: rates, no totals",
    r"connect-coordinator-metrics\(client-id\) .*": "the same",
    r"source-task-metrics.* transaction-size-.*": "only of sources that are exactly-once",
}
"""What our table has, and a worker need not tell."""


@pytest.fixture(scope="module")
def busy(sides: Sides) -> Iterator[Sides]:
    """Both sides with a source and a sink that run."""
    for side in (sides.theirs, sides.ours):
        for name, config in (("lines", {**SOURCE, **_SMT}), ("copy", SINK)):
            send(side, create(name, config))
    for side in (sides.theirs, sides.ours):
        for name in ("lines", "copy"):
            _wait_until_it_runs(side, name)
    yield sides
    clear(sides.theirs)
    clear(sides.ours)


def _wait_until_it_runs(side: Side, name: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        status = send(side, GET(f"/connectors/{name}/status"))
        if status.status == 200 and [task["state"] for task in status.body["tasks"]] == ["RUNNING"]:
            return
        assert time.monotonic() < deadline, (side.name, status)
        time.sleep(0.2)


def _mbeans(port: int) -> set[Attribute]:
    command = [sys.executable, "-m", "tests.parity.read_mbeans", str(port)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=_ROOT)
    assert ran.returncode == 0, ran.stderr
    found: set[Attribute] = set()
    for name, attributes in json.loads(ran.stdout).items():
        # Values are quoted where they have a comma or the like: a tag begins after a comma, with its name.
        tags = dict(re.findall(r'(?:^|,)([a-z-]+)=("[^"]*"|[^,]*)', name.removeprefix(f"{_DOMAIN}:")))
        group = tags.pop("type")
        found |= {(group, tuple(sorted(tags)), attribute) for attribute in attributes}
    return found


def _shown(attribute: Attribute) -> str:
    group, tags, name = attribute
    return f"{group}({','.join(tags)}) {name}"


def _table() -> set[Attribute]:
    return {
        (group.name, tuple(sorted(group.tags)), attribute)
        for group in GROUPS
        if group.domain == _DOMAIN
        for attribute in group.attributes
    }


def _excused(shown: str, reasons: dict[str, str]) -> bool:
    return any(re.match(pattern, shown) for pattern in reasons)


def test_the_table_is_that_of_kafka_connect(busy: Sides) -> None:
    theirs, ours = _mbeans(busy.theirs.jmx_port), _table()

    assert [one for one in sorted(map(_shown, theirs - ours)) if not _excused(one, ONLY_THEIRS)] == []
    assert sorted(map(_shown, ours - theirs)) == sorted(ONLY_OURS)
    assert len(theirs & ours) > 120


def test_a_worker_of_ours_tells_the_whole_table(busy: Sides) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", busy.ours.port, timeout=60)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    told = {
        (sample.name, frozenset(sample.labels))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }

    untold = [
        _shown((group.name, tuple(sorted(group.tags)), attribute))
        for group in GROUPS
        if group.domain == _DOMAIN
        for attribute in group.attributes
        for shape in confluent_shapes(group, attribute)[:1]
        if (shape.name, frozenset([*shape.labels, *dict(shape.more), *([shape.text] if shape.text else [])]))
        not in told
    ]
    assert [one for one in untold if not _excused(one, UNKNOWN)] == []
