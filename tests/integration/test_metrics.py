"""A real worker is scraped while it is busy: the books balance at every scrape, and Prometheus takes it."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterable

import httpx
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from tests.integration.worker_world import World, eventually
from tests.kit.programs import require_program

NAME = 'busy "orders" {x}'
READ, WRITTEN = "icestream_records_read_total", "icestream_records_written_total"
REJECTED, FILTERED = "icestream_records_rejected_total", "icestream_records_filtered_total"


def scraped(world: World, accept: str = "") -> str:
    answer = httpx.get(f"{world.url}/metrics", headers={"Accept": accept}, timeout=60, trust_env=False)
    assert answer.status_code == 200, answer.text
    return answer.text


def sums(families: Iterable[Metric], connector: str = NAME) -> dict[str, float]:
    """Of each series of a connector, over its other labels."""
    found: dict[str, float] = {}
    for family in families:
        for sample in family.samples:
            if sample.labels.get("connector") == connector:
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def test_the_books_balance_at_every_scrape_of_a_busy_worker(world: World) -> None:
    world.topic("scraped")
    told: list[dict[str, float]] = []
    done = threading.Event()

    def scrape() -> None:
        while not done.is_set():
            told.append(sums(text_string_to_metric_families(scraped(world))))

    scraper = threading.Thread(target=scrape)
    scraper.start()
    try:
        config = world.config(
            "scraped",
            errors__tolerance="all",
            errors__deadletterqueue__topic__name="scraped-dead",
            errors__deadletterqueue__topic__replication__factor="1",
            transforms="live",
            transforms__live__type="org.apache.kafka.connect.transforms.Filter",
            transforms__live__predicate="gone",
            predicates="gone",
            predicates__gone__type="org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
        )
        world.client.create(NAME, config)
        for start in range(0, 600, 60):
            world.produce(
                "scraped", *({"id": number} for number in range(start, start + 60)), b"no JSON", None
            )
        eventually(lambda: bool(told) and told[-1].get(READ) == 620)
    finally:
        done.set()
        scraper.join()
    # None before the connector was there.
    books = [one for one in told if READ in one]
    assert (books[-1][WRITTEN], books[-1][REJECTED], books[-1][FILTERED]) == (600, 10, 10)
    for one in books:
        assert one[READ] == one[WRITTEN] + one[REJECTED] + one.get(FILTERED, 0.0)
    assert [one[READ] for one in books] == sorted(one[READ] for one in books)
    last = books[-1]
    assert last["icestream_dead_letters_total"] == 10
    assert last["icestream_files_written_total"] >= 1 and last["icestream_file_bytes_total"] > 0
    assert last["icestream_commit_duration_seconds_count"] >= 1
    assert last["icestream_end_to_end_seconds_count"] >= 1
    assert last["icestream_lag_records"] == last["icestream_lag_seconds"] == 0

    _is_taken_by_prometheus(scraped(world))
    families = {family.name: family for family in openmetrics(scraped(world, "application/openmetrics-text"))}
    _tells_of_worker_and_jvm(families)
    batch_ids = {one.exemplar.labels["commit_id"] for one in _with_exemplars(families)}
    table = world.catalog.load_table("ns.scraped")
    commits = {snapshot.summary["kafka.connect.commit-id"] for snapshot in table.snapshots()}  # type: ignore[index]
    assert batch_ids <= commits

    world.client.delete(NAME)
    assert sums(text_string_to_metric_families(scraped(world))) == {}


def _with_exemplars(families: dict[str, Metric]) -> list[object]:
    samples = families["icestream_commit_duration_seconds"].samples
    return [one for one in samples if one.exemplar and one.labels["connector"] == NAME]


def _tells_of_worker_and_jvm(families: dict[str, Metric]) -> None:
    def value(name: str, sample: str = "", **labels: str) -> float:
        return next(
            one.value
            for one in families[name].samples
            if one.name == (sample or name) and labels.items() <= one.labels.items()
        )

    assert value("icestream_spark_up") == 1
    assert value("icestream_spark_executors") == 1
    assert value("jvm_memory_used_bytes", area="heap") > 0
    assert value("jvm_threads_current") > 0
    # The JVM is a child.
    assert value("process_resident_memory_bytes") > value("jvm_memory_used_bytes", area="heap")
    assert value("icestream_process_children") >= 1
    created = value(
        "icestream_rest_requests", "icestream_rest_requests_total", route="/connectors", method="POST"
    )
    assert created >= 1


def _is_taken_by_prometheus(text: str) -> None:
    promtool = require_program("promtool")
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60
    )
    said = (checked.stdout + checked.stderr).splitlines()
    assert not [line for line in said if line.startswith("icestream_") or "error" in line], said
