"""Every command that the docs show is run by a test, or says that it is not, and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.docs_commands import ROOT, CommandBlock, command_blocks, pages, squeezed
from tests.kit.faults import assert_no_faults

HOW: Final = (
    "write directly above it '<!-- run by: tests/… -->' with a test that reads this page or has each line as "
    "it is (tests/docs_commands.py: commands_run_by), or '<!-- not run: why -->'"
)

BLOCKS: Final = {
    "    $ icestream kafka start\n": "nothing says what runs 'icestream kafka start'",
    "```sh\nls\n```\n": "nothing says what runs 'ls'",
    "```\nkubectl get pods\n```\n": "nothing says what runs 'kubectl get pods'",
    "<!-- not run: x -->\n\nProse.\n\n    make it\n": "nothing says what runs 'make it'",
    "<!-- not run: -->\n\n    make it\n": "'not run' needs a reason",
    "<!-- run by: tests/none.py -->\n\n    make it\n": (
        "there is no tests/none.py; name a test file from the top of the repository"
    ),
    "<!-- run by: tests/conftest.py -->\n\n    make it\n": (
        "tests/conftest.py neither names page.md nor has 'make it'"
    ),
    "<!-- run by: tests/test_docs_commands.py -->\n\n    make it   # so\n": None,
    "<!-- not run: it makes a machine -->\n```sh\nmake \\\n  it\n```\n": None,
    "```yaml\nmake: it\n```\n\n    make_of_a_car == 1\n": None,
}


def test_every_command_is_run_by_a_test_or_marked_as_not_run() -> None:
    blocks = (block for page in pages() for block in command_blocks(page))
    assert_no_faults((f"{block.place}: {fault}" for block in blocks for fault in faults_of(block)), HOW)


def faults_of(block: CommandBlock) -> Iterator[str]:
    if block.note is None:
        yield f"nothing says what runs '{block.commands[0] if block.commands else 'an empty block'}'"
        return
    if not block.note.run_by:
        if not block.note.reason:
            yield "'not run' needs a reason"
        return
    missing = [name for name in block.note.run_by if not (ROOT / name).is_file()]
    if missing:
        yield f"there is no {missing[0]}; name a test file from the top of the repository"
        return
    tests = squeezed("\n".join((ROOT / name).read_text() for name in block.note.run_by))
    if _name(block.page) in tests:
        return
    named = ", ".join(block.note.run_by)
    for command in block.commands:
        if squeezed(command) not in tests:
            yield f"{named} neither names {_name(block.page)} nor has '{command}'"


def _name(page: Path) -> str:
    """How a test names a page: many are called README."""
    within = page.relative_to(ROOT) if page.is_relative_to(ROOT) else Path(page.name)
    return str(within) if page.name == "README.md" and len(within.parts) > 1 else page.name


def test_a_block_without_its_note_is_a_fault(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    found = {}
    for text in BLOCKS:
        page.write_text(text)
        found[text] = next((fault for block in command_blocks(page) for fault in faults_of(block)), None)
    assert found == BLOCKS


def test_lines_that_go_on_are_one_command_and_output_is_none(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("    $ connect-standalone.sh \\\n        a.properties   # two lines\n    started\n")
    (block,) = command_blocks(page)
    assert block.commands == ("connect-standalone.sh a.properties",)
