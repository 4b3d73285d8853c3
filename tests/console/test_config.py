"""The config of a connector in the browser: errors at their keys, masks, two editors, two tabs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from icestream.api.config import Config
from icestream.api.errors import Problem
from tests.console.conftest import Pages
from tests.console.settings_form import box, open_groups, setting
from tests.console.world import World

SECRET = "open-sesame-42"
MORE = {
    "iceberg.catalog.password": SECRET,
    "iceberg.catalog.token": "${file:/run/secrets:token}",
    "iceberg.catalog.uri": "http://bob:hunter22@catalog:8181",
    "team.of.this": "payments",
}


@pytest.fixture
def deep_checks(world: World) -> Iterator[list[Config]]:
    """What was checked deep, in order."""
    checked: list[Config] = []
    before = world.service._validator

    def probe(config: Config) -> list[Problem]:
        checked.append(config)
        return (
            [Problem("topics", "the topic 'nowhere' does not exist")] if config["topics"] == "nowhere" else []
        )

    world.service._validator = replace(before, probing=probe)
    yield checked
    world.service._validator = before


def editor(world: World, pages: Pages, name: str = "sink") -> Page:
    page = pages.open(f"{world.url}#/c/{name}/config")
    expect(setting(page, "connector.class")).to_be_visible()
    return page


def section(page: Page, title: str) -> Locator:
    return page.locator("details.section").filter(has=page.get_by_role("heading", name=title))


def shown(page: Page, key: str) -> Locator:
    """A setting, in an opened group."""
    open_groups(page)
    return setting(page, key)


def save(page: Page) -> None:
    page.get_by_role("button", name="Save").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()


def test_a_typo_is_told_at_its_key_and_one_click_repairs_it(
    world: World, pages: Pages, deep_checks: list[Config]
) -> None:
    world.add("sink")
    deep_checks.clear()
    page = editor(world, pages)
    page.get_by_label("Another key").fill("iceberg.tables.auto-creat-enabled")
    page.get_by_role("button", name="Add key").click()
    box(page, "iceberg.tables.auto-creat-enabled").fill("true")
    expect(setting(page, "iceberg.tables.auto-creat-enabled")).to_contain_text("did you mean")
    setting(page, "iceberg.tables.auto-creat-enabled").get_by_role("button", name="instead").click()
    expect(setting(page, "iceberg.tables.auto-creat-enabled")).to_have_count(0)
    expect(shown(page, "iceberg.tables.auto-create-enabled")).to_contain_text("changed")
    assert deep_checks == []
    save(page)
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert len(deep_checks) == 1
    assert world.service.config("sink")["iceberg.tables.auto-create-enabled"] == "true"


def test_what_a_deep_check_finds_at_a_save_is_told_at_its_key(
    world: World, pages: Pages, deep_checks: list[Config]
) -> None:
    world.add("sink")
    pages.allow("400")
    page = editor(world, pages)
    shown(page, "topics")
    box(page, "topics").fill("nowhere")
    save(page)
    expect(setting(page, "topics")).to_contain_text("the topic 'nowhere' does not exist")
    assert world.service.config("sink")["topics"] == "sink"


def test_the_typo_by_keyboard_alone(world: World, pages: Pages, deep_checks: list[Config]) -> None:
    world.add("sink")
    page = pages.open(f"{world.url}#/c/sink")
    expect(page.get_by_role("heading", name="sink")).to_be_visible()
    page.keyboard.press("e")
    expect(setting(page, "connector.class")).to_be_visible()
    tab_to(page, page.get_by_label("Another key"))
    page.keyboard.type("tasks.mx")
    page.keyboard.press("Enter")
    expect(setting(page, "tasks.mx")).to_be_visible()
    tab_to(page, box(page, "tasks.mx"), back=True)
    page.keyboard.type("3")
    repair = setting(page, "tasks.mx").get_by_role("button", name="instead")
    expect(repair).to_be_visible()
    tab_to(page, repair)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Save 1 change…")).to_be_visible()
    tab_to(page, page.get_by_role("button", name="Save 1 change…"), back=True)
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("tasks.max")
    tab_to(page, dialog.get_by_role("button", name="Save", exact=True))
    page.keyboard.press("Enter")
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert world.service.config("sink")["tasks.max"] == "3"


def test_the_key_of_the_config_works_before_it_is_known_who_asks(world: World, pages: Pages) -> None:
    world.add("sink")
    context = pages.context()
    held: list[Route] = []
    context.route("**/console/api/me*", lambda route: held.append(route))
    page = pages.open_in(context, f"{world.url}#/c/sink")
    expect(page.get_by_role("heading", name="sink")).to_be_visible()
    page.keyboard.press("e")
    expect(page.get_by_text("Loading the config")).to_be_visible()
    while not held:
        page.wait_for_timeout(10)
    held[0].continue_()
    expect(setting(page, "connector.class")).to_be_visible()


def tab_to(page: Page, wanted: Locator, *, back: bool = False) -> None:
    for _ in range(400):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Shift+Tab" if back else "Tab")
    raise AssertionError(f"no way to {wanted} by keyboard")


def test_keys_that_validate_does_not_know_masks_and_placeholders_survive_a_save(
    world: World, pages: Pages
) -> None:
    world.add("sink", MORE)
    before = dict(world.service.config("sink"))
    page = editor(world, pages)
    shown(page, "iceberg.catalog.password")
    expect(box(page, "iceberg.catalog.password")).to_have_value("[hidden]")
    expect(box(page, "iceberg.catalog.token")).to_have_value(MORE["iceberg.catalog.token"])
    expect(box(page, "iceberg.catalog.uri")).to_have_value("http://bob:[hidden]@catalog:8181")
    content = page.content()
    assert SECRET not in content and "hunter22" not in content
    box(page, "team.of.this").fill("orders")
    sent: list[str] = []
    page.on(
        "request", lambda request: sent.append(request.post_data or "") if request.method == "PATCH" else None
    )
    save(page)
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert sent == ['{"team.of.this":"orders"}']
    assert world.service.config("sink") == {**before, "team.of.this": "orders"}


def test_keys_that_are_words_of_javascript_are_keys_like_others(world: World, pages: Pages) -> None:
    words = {"constructor": "a", "toString": "b", "__proto__": "c", "hasOwnProperty": "d"}
    world.add("sink", words)
    page = editor(world, pages)
    shown(page, "constructor")
    for key, value in words.items():
        expect(box(page, key)).to_have_value(value)
    box(page, "__proto__").fill("changed")
    box(page, "constructor").fill("too")
    save(page)
    expect(page.get_by_text("Saved.")).to_be_visible()
    stored = world.service.config("sink")
    assert {key: stored[key] for key in words} == {**words, "__proto__": "changed", "constructor": "too"}


def test_a_secret_is_replaced_by_typing_it(world: World, pages: Pages) -> None:
    world.add("sink", MORE)
    page = editor(world, pages)
    shown(page, "iceberg.catalog.password").get_by_role("button", name="Replace").click()
    expect(box(page, "iceberg.catalog.password")).to_have_attribute("type", "password")
    box(page, "iceberg.catalog.password").fill("a new one")
    page.get_by_role("button", name="Save 1 change…").click()
    expect(page.get_by_role("dialog")).to_contain_text("a new secret")
    assert "a new one" not in page.get_by_role("dialog").inner_text()
    page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert world.service.config("sink")["iceberg.catalog.password"] == "a new one"


def test_the_second_of_two_editors_gets_the_conflict(world: World, pages: Pages) -> None:
    world.add("sink")
    pages.allow("409")
    one, two = editor(world, pages), editor(world, pages)
    for page, topics in ((one, "theirs"), (two, "mine")):
        shown(page, "topics")
        box(page, "topics").fill(topics)
    save(one)
    expect(one.get_by_text("Saved.")).to_be_visible()
    save(two)
    dialog = two.get_by_role("dialog")
    expect(dialog).to_contain_text("Somebody else has changed this config")
    for text in ("sink", "theirs", "mine"):
        expect(dialog.get_by_role("row", name="topics")).to_contain_text(text)
    assert world.service.config("sink")["topics"] == "theirs"
    dialog.get_by_role("button", name="Go on from what is stored").click()
    save(two)
    expect(two.get_by_text("Saved.")).to_be_visible()
    assert world.service.config("sink")["topics"] == "mine"


def test_text_and_form_are_one_model(world: World, pages: Pages) -> None:
    world.add("sink", MORE)
    page = editor(world, pages)
    shown(page, "topics")
    box(page, "topics").fill("from-the-form")
    page.get_by_role("button", name="Text").click()
    text = page.get_by_label("The config as text")
    assert '"topics": "from-the-form"' in text.input_value()
    assert '"iceberg.catalog.password": "[hidden]"' in text.input_value()
    text.fill(text.input_value().replace("from-the-form", "from-the-text"))
    text.press("End")
    page.get_by_role("button", name="Form").click()
    shown(page, "topics")
    expect(box(page, "topics")).to_have_value("from-the-text")
    page.get_by_role("button", name="Text").click()
    text.fill("{ no json")
    expect(page.get_by_text("This is not JSON")).to_be_visible()
    page.get_by_role("button", name="Form").click()
    shown(page, "topics")
    expect(box(page, "topics")).to_have_value("from-the-text")
    expect(page.get_by_role("button", name="Save 1 change…")).to_be_visible()


class Checks:
    """The checks of a config that a page asks for; the test answers them."""

    def __init__(self, page: Page) -> None:
        self._page, self._held, self._taken = page, list[Route](), 0
        page.route("**/console/api/validate*", lambda route: self._held.append(route))

    def next(self) -> Route:
        while len(self._held) == self._taken:
            self._page.wait_for_timeout(10)
        self._taken += 1
        return self._held[self._taken - 1]


def test_there_is_no_form_before_it_is_known_where_its_fields_stand(world: World, pages: Pages) -> None:
    world.add("sink")
    page = pages.open(world.url)
    checks = Checks(page)
    page.goto(f"{world.url}#/c/sink/config")
    expect(page.get_by_text("Loading the settings")).to_be_visible()
    expect(setting(page, "topics")).to_have_count(0)
    page.get_by_role("button", name="Text").click()
    expect(page.get_by_label("The config as text")).to_have_value(re.compile('"topics": "sink"'))
    page.get_by_role("button", name="Form").click()
    checks.next().continue_()
    expect(setting(page, "topics")).to_be_visible()
    expect(section(page, "Other keys").locator(setting(page, "topics"))).to_have_count(0)


def test_nothing_that_is_typed_is_lost_when_a_check_says_where_the_fields_stand(
    world: World, pages: Pages
) -> None:
    world.add("sink")
    pages.allow("503")
    page = pages.open(world.url)
    checks = Checks(page)
    page.goto(f"{world.url}#/c/sink/config")
    checks.next().fulfill(status=503, json={"message": "not now"})
    expect(page.get_by_text("not now")).to_be_visible()
    box(page, "topics").focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("from-")
    checks.next().continue_()
    expect(page.get_by_text("not now")).to_have_count(0)
    expect(setting(page, "topics")).to_contain_text("The topics to read")
    page.keyboard.insert_text("the-form")
    expect(box(page, "topics")).to_have_value("from-the-form")
    checks.next().continue_()
    page.get_by_role("button", name="Text").click()
    expect(page.get_by_label("The config as text")).to_have_value(re.compile('"topics": "from-the-form"'))
    page.get_by_role("button", name="Form").click()
    expect(section(page, "Required and changed").locator(setting(page, "topics"))).to_be_visible()


@pytest.mark.parametrize("kind", ["JSON", ".properties"])
def test_what_is_downloaded_can_be_uploaded(world: World, pages: Pages, tmp_path: Path, kind: str) -> None:
    world.add("sink", {**MORE, "note": 'ä "quoted" = # text', "topics": "a,b"})
    before = dict(world.service.config("sink"))
    page = editor(world, pages)
    with page.expect_download() as loading:
        page.get_by_role("button", name=kind, exact=True).click()
    file = tmp_path / loading.value.suggested_filename
    loading.value.save_as(file)
    assert SECRET not in file.read_text()
    page.get_by_label("A file with a config").set_input_files(file)
    expect(page.get_by_text("is in the form")).to_be_visible()
    expect(page.get_by_role("button", name="Save…", exact=True)).to_be_disabled()
    other = tmp_path / f"other{file.suffix}"
    other.write_text(file.read_text().replace("a,b", "a,b,c"))
    page.get_by_label("A file with a config").set_input_files(other)
    page.get_by_role("button", name="Save 1 change…").click()
    page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert world.service.config("sink") == {**before, "topics": "a,b,c"}
