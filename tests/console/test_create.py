"""A new connector in the browser: step by step, from a file, like another one."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from icestream.api.status import State
from tests.console.conftest import Pages
from tests.console.settings_form import box, open_groups, setting
from tests.console.world import World, iceberg


def next_step(page: Page) -> Locator:
    return page.get_by_role("button", name="Next:")


def test_a_connector_is_made_step_by_step_and_begins_stopped(world: World, pages: Pages) -> None:
    page = pages.open(f"{world.url}#/new")
    page.get_by_label("Search classes").fill("iceberg.connect.IcebergSink")
    page.locator(".class-choice").first.click()
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    expect(next_step(page)).to_be_disabled()
    page.locator("#connector-name").fill("made")
    expect(setting(page, "iceberg.tables")).to_have_count(1)
    open_groups(page)
    box(page, "topics").fill("t")
    box(page, "iceberg.tables").fill("db.t")
    page.get_by_label("Another key").fill("iceberg.catalog.type")
    page.get_by_role("button", name="Add key").click()
    box(page, "iceberg.catalog.type").fill("sql")
    box(page, "tasks.max").fill("many")
    expect(setting(page, "tasks.max")).to_contain_text("Not a number")
    expect(next_step(page)).to_be_disabled()
    box(page, "tasks.max").fill("2")
    expect(next_step(page)).to_be_enabled()
    next_step(page).click()
    open_groups(page)
    box(page, "errors.tolerance").fill("some")
    expect(setting(page, "errors.tolerance")).to_contain_text("must be one of")
    expect(next_step(page)).to_be_disabled()
    box(page, "errors.tolerance").fill("all")
    expect(next_step(page)).to_be_enabled()
    next_step(page).click()
    expect(page.get_by_text("Everything checked")).to_be_visible()
    page.get_by_label("STOPPED").check()
    page.get_by_text("The same by command").click()
    expect(page.locator(".copyable").first).to_contain_text("curl -X POST")
    expect(page.locator(".copyable").last).to_contain_text("icestream connector create -f -")
    page.get_by_role("button", name="Create the connector").click()
    expect(page.get_by_role("heading", name="made", level=1)).to_be_visible()
    assert world.service.status("made").state is State.STOPPED
    assert world.service.config("made")["errors.tolerance"] == "all"


def test_what_is_wrong_with_a_file_cannot_be_finished(world: World, pages: Pages, tmp_path: Path) -> None:
    config = {**iceberg("sink"), "iceberg.tabels": "x"}
    file = tmp_path / "sink.json"
    file.write_text(json.dumps({"name": "from-file", "config": config}))
    page = pages.open(f"{world.url}#/new")
    page.get_by_label("A file with a connector").set_input_files(file)
    expect(page.locator("#connector-name")).to_have_value("from-file")
    expect(setting(page, "iceberg.tabels")).to_contain_text("did you mean")
    expect(next_step(page)).to_be_disabled()
    setting(page, "iceberg.tabels").get_by_role("button", name="Remove").or_(
        setting(page, "iceberg.tabels").get_by_role("button", name="Undo")
    ).click()
    expect(next_step(page)).to_be_enabled()
    next_step(page).click()
    next_step(page).click()
    page.get_by_role("button", name="Create the connector").click()
    expect(page.get_by_role("heading", name="from-file", level=1)).to_be_visible()
    assert world.service.status("from-file").state is State.RUNNING


def test_a_copy_has_no_secrets(world: World, pages: Pages) -> None:
    world.add("sink", {"iceberg.catalog.password": "open-sesame-42"})
    page = pages.open(f"{world.url}#/new?copy=sink")
    expect(page.get_by_text("Secrets are not copied")).to_contain_text("iceberg.catalog.password")
    page.locator("#connector-name").fill("copy")
    next_step(page).click()
    next_step(page).click()
    page.get_by_role("button", name="Create the connector").click()
    expect(page.get_by_role("heading", name="copy", level=1)).to_be_visible()
    made = dict(world.service.config("copy"))
    assert made == {**iceberg("sink"), "name": "copy"}
