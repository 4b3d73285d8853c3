"""The demo's three connectors in the browser: what the rows say is what `icestream verify` finds.

The short form runs them in the worker of these tests, without Spark; the long one is `icestream demo` itself.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from icestream.cli import main
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.embedded.home import home
from icestream.embedded.kafka import Broker
from icestream.embedded.loadgen import produce
from icestream.embedded.minio_tables import LOG_TABLES, LogTable, sqlite_catalog
from icestream.kafka.topics import Topics
from tests.console.conftest import Pages
from tests.console.real_worker import RealWorker, running_worker

LOGS = tuple(replace(log, topic=f"shown-{log.topic}") for log in LOG_TABLES)
"""Topics of their own: the broker is shared."""
FIRST, MORE, BAD = 300, 120, 3
STRING = "org.apache.kafka.connect.storage.StringConverter"
_BOOKS = re.compile(r"([\d,]+) in the topic, ([\d,]+) in the table, ([\d,]+) in the dead letter queue")


@pytest.fixture
def worker(broker: Broker, tmp_path: Path) -> Iterator[RealWorker]:
    catalog = sqlite_catalog(str(tmp_path))
    topics = Topics({"bootstrap.servers": broker.bootstrap})
    with running_worker(broker) as running:
        for log in LOGS:
            topics.create(log.topic, 3, 1)
            config = {
                **log.connector_config(catalog),
                "iceberg.control.commit.interval-ms": "500",
                "key.converter": STRING,
                "name": log.connector,
            }
            log.create(open_catalog(config))
            running.service.create(log.connector, config)
        yield running


def test_the_three_connectors_appear_move_and_add_up_to_verify(
    worker: RealWorker, broker: Broker, pages: Pages, capsys: pytest.CaptureFixture[str]
) -> None:
    page = pages.open(worker.url)
    expect(page.locator("tr.entry")).to_have_count(3)
    is_same_page(page, mark=True)
    url = worker.url.removesuffix("/console/")
    for start, records in ((0, FIRST), (FIRST, MORE)):
        for log in LOGS:
            produce(broker.bootstrap, log.topic, log.kind, records, bad=BAD, seed=1, start=start)
        rejected = BAD if start == 0 else 2 * BAD
        written = start + records - rejected
        for log in LOGS:
            expect(cell(page, log, "Rows")).to_have_text(f"{written:,}")
            expect(cell(page, log, "Rejected")).to_have_text(f"{rejected:,}")
            expect(cell(page, log, "Lag")).to_have_text("0")
        for log in LOGS:
            asked = ["verify", log.connector, "--deep", "--url", url, "--bootstrap-servers", broker.bootstrap]
            assert main.run(asked) == 0
            assert books(capsys.readouterr().out) == (start + records, written, rejected)
    assert is_same_page(page)


@pytest.mark.long
def test_the_demo_itself(pages: Pages, tmp_path: Path) -> None:
    with running_demo(tmp_path) as (url, bootstrap, said):
        page = pages.open(f"{url}/console/")
        expect(page.locator("tr.entry")).to_have_count(3)
        is_same_page(page, mark=True)
        eventually_in(said, "Running until Ctrl-C")
        # Records come all the time: what the page shows is between what is found before and after.
        for log in LOG_TABLES:
            _, written, rejected = verified(log, url, bootstrap)
            shown = at_least(page, log, written + 1)
            assert shown <= verified(log, url, bootstrap)[1]
            expect(cell(page, log, "Rejected")).to_have_text(f"{rejected:,}")
        assert is_same_page(page)
        page.close()


def cell(page: Page, log: LogTable, column: str) -> Locator:
    titles = [title.strip() for title in page.get_by_role("columnheader").all_inner_texts()]
    row = page.locator("tr.entry", has=page.get_by_role("link", name=log.connector, exact=True))
    return row.locator("td").nth(titles.index(column))


def at_least(page: Page, log: LogTable, rows: int) -> int:
    deadline = time.monotonic() + 120
    while (shown := number(cell(page, log, "Rows").inner_text())) < rows:
        assert time.monotonic() < deadline, f"{log.connector} shows {shown:,} rows, not {rows:,}"
        page.wait_for_timeout(200)
    return shown


def is_same_page(page: Page, *, mark: bool = False) -> bool:
    """Whether the page was never loaded again since it was marked."""
    if mark:
        page.evaluate("window.wasSeen = true")
    return bool(page.evaluate("window.wasSeen === true"))


def number(text: str) -> int:
    return int(text.replace(",", ""))


def books(said: str) -> tuple[int, int, int]:
    """In the topic, in the table, in the dead letter queue."""
    (found,) = _BOOKS.findall(said)
    topic, table, letters = map(number, found)
    return topic, table, letters


def verified(log: LogTable, url: str, bootstrap: str) -> tuple[int, int, int]:
    command = [sys.executable, "-m", "icestream.cli.main", "verify", log.connector]
    ran = subprocess.run(
        [*command, "--url", url, "--bootstrap-servers", bootstrap],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return books(ran.stdout)


@contextmanager
def running_demo(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """REST's address, Kafka's, and what the demo says; it has a home of its own."""
    own, said = folder / "home", folder / "said"
    own.mkdir()
    (home() / "jars").mkdir(exist_ok=True)
    (own / "jars").symlink_to(home() / "jars")
    environment = {**os.environ, "ICESTREAM_HOME": str(own), "COLUMNS": "500"}
    # A process that a script started in the background ignores Ctrl-C, and so would its child.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with said.open("wb") as output:
        demo = subprocess.Popen(
            [sys.executable, "-u", "-m", "icestream.cli.main", "demo", "--records", "3000", "--keep"],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    signal.signal(signal.SIGINT, before)
    try:
        found = eventually_in(said, r"Kafka on (\S+), REST on (\S+), tables")
        eventually_in(said, "look at it: ")
        yield found[2], found[1], said
        os.killpg(demo.pid, signal.SIGINT)
        demo.wait(120)
    finally:
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGKILL)
            demo.wait()


def eventually_in(file: Path, pattern: str) -> re.Match[str]:
    deadline = time.monotonic() + 300
    while (found := re.search(pattern, file.read_text(errors="replace"))) is None:
        assert time.monotonic() < deadline, file.read_text(errors="replace")[-3000:]
        time.sleep(0.2)
    return found
