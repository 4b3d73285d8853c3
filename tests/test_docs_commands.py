"""Every command that the docs show is run by a test, or says that it is not, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs_commands import ROOT, CommandBlock, command_blocks, pages, squeezed

HOW = (
    "write directly above it '<!-- run by: tests/… -->' with a test that reads this page or has each line as "
    "it is (tests/docs_commands.py: commands_run_by), or '<!-- not run: why -->'"
)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_is_run_by_a_test_or_marked_as_not_run(page: Path) -> None:
    wrong = [said for block in command_blocks(page) if (said := problem(block))]
    assert not wrong, "\n".join(wrong)


def problem(block: CommandBlock) -> str | None:
    if block.note is None:
        shown = block.commands[0] if block.commands else "an empty block"
        return f"{block.place}: nobody says who runs '{shown}': {HOW}"
    if not block.note.run_by:
        return None if block.note.reason else f"{block.place}: 'not run' needs a reason"
    missing = [name for name in block.note.run_by if not (ROOT / name).is_file()]
    if missing:
        return f"{block.place}: there is no {missing[0]}; name a test file from the top of the repository"
    tests = squeezed("\n".join((ROOT / name).read_text() for name in block.note.run_by))
    if _name(block.page) in tests:
        return None
    unknown = [command for command in block.commands if squeezed(command) not in tests]
    if unknown:
        named = ", ".join(block.note.run_by)
        return f"{block.place}: {named} neither names {_name(block.page)} nor has '{unknown[0]}'"
    return None


def _name(page: Path) -> str:
    """How a test names a page: many are called README."""
    within = page.relative_to(ROOT) if page.is_relative_to(ROOT) else Path(page.name)
    return str(within) if page.name == "README.md" and len(within.parts) > 1 else page.name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("    $ icestream kafka start\n", "nobody says who runs 'icestream kafka start'"),
        ("```sh\nls\n```\n", "nobody says who runs 'ls'"),
        ("```\nkubectl get pods\n```\n", "nobody says who runs 'kubectl get pods'"),
        ("<!-- not run: x -->\n\nProse.\n\n    make it\n", "nobody says who runs 'make it'"),
        ("<!-- not run: -->\n\n    make it\n", "needs a reason"),
        ("<!-- run by: tests/none.py -->\n\n    make it\n", "there is no tests/none.py"),
        ("<!-- run by: tests/conftest.py -->\n\n    make it\n", "neither names page.md nor has 'make it'"),
        ("<!-- run by: tests/test_docs_commands.py -->\n\n    make it   # so\n", None),
        ("<!-- not run: it makes a machine -->\n```sh\nmake \\\n  it\n```\n", None),
        ("```yaml\nmake: it\n```\n\n    make_of_a_car == 1\n", None),
    ],
)
def test_a_block_without_its_note_is_told_with_what_to_write(
    text: str, said: str | None, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    told = [problem(block) for block in command_blocks(page)]
    if said is None:
        assert not any(told)
    else:
        (only,) = told
        assert said in str(only)


def test_lines_that_go_on_are_one_command_and_output_is_none(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("    $ connect-standalone.sh \\\n        a.properties   # two lines\n    started\n")
    (block,) = command_blocks(page)
    assert block.commands == ("connect-standalone.sh a.properties",)
