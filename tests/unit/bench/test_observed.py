"""What is made of the runs of a worker that is watched and of one that is not."""

from __future__ import annotations

import httpx

from bench.observed import Scrape, as_json, cost_of, trace_taker, unobserved_side, watched_side
from bench.rounds import Drained
from bench.table import Content
from icestream.cluster.settings.worker_config import parse_standalone

JSON = "org.apache.kafka.connect.json.JsonConverter"


def run(side: str, number: int, seconds: float, cpu: float) -> Drained:
    return Drained(side, number, 1000, seconds, 0.1, cpu, 1, 1, 1.0, 0.0, Content(1000, 1000, 1, 1))


def test_medians_are_compared() -> None:
    runs = [
        *(run("watched", number, seconds, 4.0) for number, seconds in enumerate((1.0, 2.0, 50.0), 1)),
        *(run("unobserved", number, seconds, 2.0) for number, seconds in enumerate((1.0, 1.0, 9.0), 1)),
    ]
    cost = cost_of(runs, [Scrape(0.01, 100), Scrape(0.03, 300), Scrape(0.02, 200)])
    assert (cost.drain_ratio, cost.cpu_ratio) == (0.5, 2.0)
    assert (cost.scrapes, cost.scrape_seconds, cost.scrape_bytes) == (3, 0.02, 200)
    assert as_json(cost)["ratio"] == {"drain": 0.5, "cpu": 2.0}


def test_both_workers_have_configs_that_a_worker_takes() -> None:
    for side in (watched_side(9404, "http://127.0.0.1:4318/v1/traces"), unobserved_side()):
        given = {
            "key.converter": JSON,
            "value.converter": JSON,
            "offset.storage.file.filename": "/tmp/offsets",
        }
        config = parse_standalone({**given, "icestream.unknown.keys": "error", **side.worker})
        assert bool(config.metrics.listeners) is (side.name == "watched")


def test_somebody_takes_traces() -> None:
    with trace_taker() as url:
        assert httpx.post(url, content=b"spans", trust_env=False).status_code == 200
