"""Dead letters and offsets in the browser, with a real broker, a real table and the job between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from icestream.api.offsets import Partition
from icestream.api.status import State
from icestream.embedded.kafka import Broker
from tests.console.conftest import Pages
from tests.console.real_worker import RealWorker, running_worker
from tests.integration.local_job import World as Job


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def worker(broker: Broker) -> Iterator[RealWorker]:
    with running_worker(broker) as running:
        yield running


@pytest.fixture
def job(worker: RealWorker, broker: Broker, tmp_path: Path) -> Iterator[Job]:
    """A connector that runs, its topic and its table."""
    job = Job(broker, tmp_path, options={"iceberg.control.commit.interval-ms": "200"})
    worker.service.create(job.name, {**job.config, "name": job.name})
    yield job
    worker.service.delete(job.name)


def ids(job: Job) -> list[int]:
    return [row["id"] for row in job.rows()]


def rejected(worker: RealWorker, job: Job) -> int:
    return worker.service.progress(job.name).rejected


def test_dead_letters_are_groups_with_payloads_and_go_back_once(
    worker: RealWorker, job: Job, pages: Pages
) -> None:
    job.produce([b"{ no json", b"\xff\xfe\x00", {"id": 1, "amount": "<b>much</b>"}, {"id": 2, "amount": "x"}])
    job.produce([{"text": "no id"}, {"id": 3}])
    eventually(lambda: rejected(worker, job) == 5)
    page = pages.open(f"{worker.url}#/c/{job.name}/letters")
    groups = page.get_by_label("Groups of dead letters").locator("tbody tr")
    expect(groups.first).to_be_visible()
    counts = {
        row.locator("td").nth(0).inner_text(): row.locator("td").nth(1).inner_text() for row in groups.all()
    }
    assert len(counts) >= 3 and sum(map(int, counts.values())) == 5, counts
    amount = groups.filter(has_text="amount")
    expect(amount.locator("td").nth(1)).to_have_text("2")

    page.goto(f"{worker.url}#/c/{job.name}/letters?where=offset%3D0")
    expect(groups).to_have_count(1)
    assert payload(page, job, 0) == ("text", "{ no json")
    page.goto(f"{worker.url}#/c/{job.name}/letters?where=offset%3D1")
    kind, text = payload(page, job, 1)
    assert (kind, text[:18]) == ("hex", "00000000  ff fe 00")
    page.goto(f"{worker.url}#/c/{job.name}/letters?where=offset%3D2")
    kind, text = payload(page, job, 2)
    assert kind == "json" and '"amount": "<b>much</b>"' in text

    page.goto(f"{worker.url}#/c/{job.name}/letters")
    groups.filter(has_text="'id'").get_by_role("button", name="Replay").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"1 dead letter would be sent to {job.name}.")
    expect(dialog).to_contain_text("Every reader of the topic gets them again")
    dialog.get_by_role("button", name="Send 1 dead letter").click()
    expect(dialog).to_contain_text("1 of 1 sent.")
    dialog.get_by_role("button", name="Close").last.click()
    eventually(lambda: rejected(worker, job) == 6)  # nobody has mended it

    elsewhere = Partition(f"{job.name}-again", 0)
    job.topics.create(elsewhere.topic, 1, 1)
    for count, before in ((2, 0), (0, 2)):
        amount.get_by_role("button", name="Replay").click()
        dialog.get_by_label("To another topic").fill(elsewhere.topic)
        expect(dialog).to_contain_text(
            f"{count} dead letters would be sent to {elsewhere.topic}" if count else "0 dead"
        )
        if before:
            expect(dialog).to_contain_text("2 were sent before")
            expect(dialog.get_by_role("button", name="Send")).to_be_disabled()
            dialog.get_by_role("button", name="Cancel").click()
        else:
            dialog.get_by_role("button", name="Send 2 dead letters").click()
            expect(dialog).to_contain_text("2 of 2 sent.")
            dialog.get_by_role("button", name="Close").last.click()
    expect(amount.locator("td").nth(2)).to_have_text("2")
    # Two records, and the marker of their transaction.
    assert job.topics.ends([elsewhere])[elsewhere] == 3


def payload(page: Page, job: Job, offset: int) -> tuple[str, str]:
    """The kind and the text of the value of a record, of a page with one group."""
    page.get_by_label("Groups of dead letters").get_by_role("button").first.click()
    page.get_by_role("button", name=f"{job.name}-0@{offset}", exact=True).click()
    value = page.get_by_role("dialog").locator(".payload").first
    expect(value).to_be_visible()
    found = value.get_attribute("data-kind") or "", value.locator("pre").inner_text()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    return found


def test_a_preview_of_offsets_comes_true(worker: RealWorker, job: Job, pages: Pages) -> None:
    job.produce([{"id": number} for number in range(10)])
    eventually(lambda: len(ids(job)) == 10)
    page = pages.open(f"{worker.url}#/c/{job.name}/offsets")
    target = page.get_by_label(f"Move {job.name}-0 to")
    expect(target).to_be_disabled()
    page.get_by_role("button", name="Stop it").click()
    expect(target).to_be_enabled()
    job.produce([{"id": number} for number in range(10, 15)])

    target.fill("99")
    pages.allow("400")
    page.get_by_role("button", name="Preview 1 move").click()
    expect(page.get_by_text("This would be refused")).to_be_visible()
    target.fill("7")
    page.get_by_role("button", name="Preview 1 move").click()
    expect(page.get_by_label("Preview", exact=True)).to_contain_text("3 records will be read again")
    page.get_by_role("button", name="Move 1 partition").click()
    expect(page.get_by_text("altered successfully")).to_be_visible()
    worker.service.resume(job.name)
    eventually(lambda: len(ids(job)) == 18)
    assert ids(job) == sorted([*range(15), 7, 8, 9])

    worker.service.stop(job.name)
    eventually(lambda: worker.service.status(job.name).state is State.STOPPED)
    job.produce([{"id": number} for number in range(15, 20)])
    page.reload()
    target.fill("18")
    page.get_by_role("button", name="Preview 1 move").click()
    expect(page.get_by_label("Preview", exact=True)).to_contain_text("3 records will be skipped for ever")
    page.get_by_role("button", name="Move 1 partition").click()
    expect(page.get_by_text("altered successfully")).to_be_visible()
    worker.service.resume(job.name)
    eventually(lambda: len(ids(job)) == 20)
    assert ids(job) == sorted([*range(15), 7, 8, 9, 18, 19])
    page.get_by_role("button", name="Verify").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Verify", exact=True).click()
    expect(dialog).to_contain_text("3 of them again by hand, 3 skipped by hand")
    dialog.get_by_role("button", name="Close").last.click()


def test_letters_and_offsets_fit_into_a_narrow_window(worker: RealWorker, job: Job, pages: Pages) -> None:
    """With rows in them: in the tests of all pages these two are empty."""
    job.produce([b"{ no json", {"id": 1}])
    eventually(lambda: rejected(worker, job) == 1)
    for tab, label in (("letters", "Groups of dead letters"), ("offsets", "Offsets by partition")):
        page = pages.open(f"{worker.url}#/c/{job.name}/{tab}", viewport={"width": 360, "height": 800})
        expect(page.get_by_label(label).locator("tbody tr").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 1, tab
        page.close()


def test_a_reset_wants_the_name(worker: RealWorker, job: Job, pages: Pages) -> None:
    job.produce([{"id": number} for number in range(4)])
    eventually(lambda: len(ids(job)) == 4)
    worker.service.stop(job.name)
    page = pages.open(f"{worker.url}#/c/{job.name}/offsets")
    page.get_by_role("button", name="Reset all…").click()
    expect(page.get_by_label("Preview", exact=True)).to_contain_text("4 records will be read again")
    page.get_by_role("button", name="Reset all offsets…").click()
    dialog = page.get_by_role("dialog")
    yes = dialog.get_by_role("button", name="Reset", exact=True)
    expect(yes).to_be_disabled()
    dialog.get_by_role("textbox").fill(job.name)
    yes.click()
    expect(page.get_by_text("reset successfully")).to_be_visible()
    worker.service.resume(job.name)
    eventually(lambda: ids(job) == [0, 0, 1, 1, 2, 2, 3, 3])
