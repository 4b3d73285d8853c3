"""What is done to many connectors at once, and what cannot be taken back."""

from __future__ import annotations

from playwright.sync_api import expect

from icestream.api.errors import NotReadyError
from icestream.api.status import State
from tests.console.conftest import Pages
from tests.console.world import World


def test_of_fifty_connectors_the_one_that_refuses_is_named(world: World, pages: Pages) -> None:
    names = [f"sink-{number:02}" for number in range(50)]
    for name in names:
        world.add(name)
    pause = world.service.pause

    def refusing(name: str) -> None:
        if name == "sink-17":
            raise NotReadyError("sink-17 does not want to")
        pause(name)

    world.service.pause = refusing  # type: ignore[method-assign]
    pages.allow("409")
    try:
        page = pages.open(world.url)
        expect(page.locator("tr.entry").first).to_be_visible()
        page.get_by_label("Select all").check()
        page.get_by_role("region", name="Selected connectors").get_by_role("button", name="Pause").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("sink-17 does not want to")
        expect(dialog).to_contain_text("49 others did")
    finally:
        del world.service.pause
    states = {name: world.service.status(name).state for name in names}
    assert {name for name, state in states.items() if state is not State.PAUSED} == {"sink-17"}


def test_a_deletion_wants_the_name(world: World, pages: Pages) -> None:
    world.add("sink")
    page = pages.open(f"{world.url}#/c/sink")
    page.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog")
    yes = dialog.get_by_role("button", name="Delete", exact=True)
    expect(yes).to_be_disabled()
    dialog.get_by_role("textbox").fill("sin")
    expect(yes).to_be_disabled()
    dialog.get_by_role("textbox").fill("sink")
    yes.click()
    expect(page.get_by_text("sink is deleted.")).to_be_visible()
    assert world.service.names() == []


def test_many_are_deleted_after_their_number_was_typed(world: World, pages: Pages) -> None:
    for name in ("one", "xx-1", "xx-2"):
        world.add(name)
    page = pages.open(f"{world.url}#/connectors?q=xx-")
    expect(page.locator("tr.entry")).to_have_count(2)
    page.get_by_label("Select all").check()
    page.get_by_role("region", name="Selected connectors").get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("delete 2")
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("2 connectors deleted")).to_be_visible()
    assert world.service.names() == ["one"]
