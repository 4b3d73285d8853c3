"""The commands that pages show, block by block, and who runs them: for `test_docs_commands.py`, which asks
for it at every block, and for tests that run the blocks of a page that name them.

A block of commands is a fence of a shell (`sh`, `bash`, `shell`, `console`), or any other block of no known
language with a line that begins with `$ ` or with the name of a program. Directly above it is one of

    <!-- run by: tests/deploy/test_it.py -->
    <!-- not run: it needs a cluster -->
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
_SHELLS: Final = frozenset({"sh", "bash", "shell", "console", "zsh", "shell-session"})
_MAYBE: Final = frozenset({"", "text", "txt"})
_FENCE: Final = re.compile(r"^\s*(?P<ticks>`{3,}|~{3,})\s*(?P<language>[\w-]*)")
_NOTE: Final = re.compile(r"^\s*<!--\s*(?P<kind>run by|not run):\s*(?P<text>.*?)\s*-->\s*$")
_PROGRAM: Final = re.compile(
    r"(?:\S*/)?(?:icestream|connect-(?:standalone|distributed)(?:\.sh)?|make|pip|python3?|curl|jq|git|docker(?:-compose)?|kubectl"
    r"|kustomize|helm|buildah|podman|skopeo|psql|aws|trino|apt-get|export|set|cd|go|[\w-]+\.sh)(?:\s|$)"
)
_TRAILING_COMMENT: Final = re.compile(r"(?:^|\s+)# .*$")


@dataclass(frozen=True)
class Note:
    """What the comment above a block says: the tests that run it, or why none does."""

    run_by: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class CommandBlock:
    page: Path
    line: int
    commands: tuple[str, ...]
    note: Note | None

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT) if self.page.is_relative_to(ROOT) else self.page}:{self.line}"


def pages() -> list[Path]:
    """What becomes the site, and what newcomers read on the way to it."""
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")]
    return top + [page for part in ("docs", "examples") for page in sorted((ROOT / part).rglob("*.md"))]


def command_blocks(page: Path) -> Iterator[CommandBlock]:
    lines = page.read_text().splitlines()
    for first, language, inside in _blocks(lines):
        if language in _SHELLS or (language in _MAYBE and _looks_like_commands(inside)):
            yield CommandBlock(page, first + 1, tuple(_commands(inside)), _note_above(lines, first))


def commands_run_by(page: str, test: str) -> list[str]:
    """The commands of those blocks of a page (`docs/deploy/stack.md`) that say that this test runs them."""
    blocks = command_blocks(ROOT / page)
    name = str(Path(test).resolve().relative_to(ROOT))
    return [command for one in blocks if one.note and name in one.note.run_by for command in one.commands]


def squeezed(text: str) -> str:
    """One line and one space, so that a command is found however a test breaks its lines."""
    return " ".join(text.replace("\\\n", " ").split())


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Fences and indented blocks: the number of their first line, the language, the lines within."""
    number = 0
    while number < len(lines):
        opened = _FENCE.match(lines[number])
        if opened:
            end = number + 1
            while end < len(lines) and not lines[end].lstrip().startswith(opened["ticks"]):
                end += 1
            yield number, opened["language"].lower(), lines[number + 1 : end]
            number = end + 1
        elif lines[number].startswith("    ") and (number == 0 or not lines[number - 1].strip()):
            end = number
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield number, "", lines[number:end]
            number = end
        else:
            number += 1


def _looks_like_commands(inside: Sequence[str]) -> bool:
    return any(line.strip().startswith("$ ") or _PROGRAM.match(line.strip()) for line in inside)


def _commands(inside: Sequence[str]) -> Iterator[str]:
    """With `$ ` before commands, lines without it are what is printed; else every line is a command."""
    prompted = any(line.strip().startswith("$ ") for line in inside)
    rest = iter(inside)
    for line in rest:
        text = line.strip()
        if prompted and not text.startswith("$ "):
            continue
        text = text.removeprefix("$ ")
        while text.endswith("\\"):
            text = f"{text[:-1].rstrip()} {next(rest, '').strip()}"
        text = _TRAILING_COMMENT.sub("", text).strip()
        if text:
            yield text


def _note_above(lines: Sequence[str], first: int) -> Note | None:
    above = first - 1
    while above >= 0 and not lines[above].strip():
        above -= 1
    said = _NOTE.match(lines[above]) if above >= 0 else None
    if not said:
        return None
    if said["kind"] == "not run":
        return Note(reason=said["text"])
    return Note(run_by=tuple(name.strip() for name in said["text"].split(",") if name.strip()))
