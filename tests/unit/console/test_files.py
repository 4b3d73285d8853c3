"""The files of the console as they are in the repository: what runs in browsers is what stands here."""

from __future__ import annotations

import gzip
import hashlib
import json
import posixpath
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from icestream.rest.console.assets import TYPES, Assets, imports_of, modules_of
from tests.kit.faults import assert_no_faults

ROOT: Final = Path(__file__).parents[3]
CONSOLE: Final = ROOT / "icestream" / "console"
VENDOR: Final = CONSOLE / "vendor"
OURS: Final = sorted(path for path in CONSOLE.rglob("*") if path.is_file() and VENDOR not in path.parents)
SOURCES: Final = [path for path in OURS if path.suffix == ".js"]
FORBIDDEN: Final = (
    r"innerHTML",
    r"outerHTML",
    r"dangerouslySetInnerHTML",
    r"insertAdjacentHTML",
    r"document\.write",
    r"\beval\s*\(",
    r"new\s+Function\b",
    r"setAttribute\(\s*[\"'](?:on|style|href|src)",
    r"createContextualFragment|DOMParser|srcdoc",
    r"set(?:Timeout|Interval)\(\s*[\"'`]",
    r"\bimportScripts\b|new\s+Worker\b",
)
MOST_LINES: Final = 400
MOST_GZIP: Final = 150_000
MOST_WITHOUT_PLOTS: Final = 110_000
"""Measured: 97.7 KB, of which 27 KB are the pages that change something (decision 046)."""
PLOTS: Final = ("vendor/uplot.js", "vendor/uplot.css")


def name(path: Path) -> str:
    return path.relative_to(CONSOLE).as_posix()


def files() -> dict[str, bytes]:
    return {name(path): path.read_bytes() for path in CONSOLE.rglob("*") if path.is_file()}


def test_vendored_files_are_those_of_the_list() -> None:
    listing = json.loads((VENDOR / "vendor.json").read_text())
    expected = {file["to"]: file["sha256"] for package in listing["packages"] for file in package["files"]}
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.iterdir()
        if path.name != "vendor.json"
    }
    assert found == expected, "run scripts/vendor-console; never edit what it writes"
    for package in listing["packages"]:
        assert package["integrity"].startswith("sha512-")
        assert any(file["to"].startswith("LICENSE") for file in package["files"]), package["name"]


def test_every_file_keeps_the_rules() -> None:
    texts = {name(path): path.read_text() for path in OURS if path.suffix in (".js", ".html", ".css")}
    assert_no_faults(fault for file, text in texts.items() for fault in faults_of(file, text))


def test_a_file_that_breaks_the_rules_is_found() -> None:
    """Each rule finds what breaks it, and nothing else does."""
    good = "/** A page. */\nimport { href } from './routes.js';\nhtml`<a href=${href('x')}>x</a>`;\n"
    assert list(faults_of("good.js", good)) == []
    markup = (
        "a.innerHTML = b",
        "a.outerHTML = b",
        "h('p', { dangerouslySetInnerHTML: b })",
        "a.insertAdjacentHTML('beforeend', b)",
        "document.write(a)",
        "eval (a)",
        "new  Function(a)",
        "a.setAttribute('href', b)",
        "new DOMParser()",
        "setTimeout('a()', 1)",
        "new Worker(a)",
    )
    assert len(markup) == len(FORBIDDEN)
    faults = {line: [*faults_of("bad.js", f"{good}{line};\n")] for line in markup}
    assert {line: len(found) for line, found in faults.items()} == dict.fromkeys(markup, 1)
    for line in ("html`<a href=${url}>`", 'html`<form action="/x">`', "html`<img src=${a}>`"):
        assert any("route function" in fault for fault in faults_of("bad.js", f"{good}{line}")), line
    for file in ("bad.js", "bad.css", "bad.html"):
        assert any(
            "elsewhere" in fault for fault in faults_of(file, f"{good}// https://cdn.example.com/x.js")
        )
    assert [*faults_of("bad.js", good.removeprefix("/**"))] and [*faults_of("bad.js", good + "\n" * 400)]


def faults_of(file: str, text: str) -> Iterator[str]:
    for address in re.findall(r"""(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s"'`]*""", text):
        yield f"{file} loads from elsewhere: {address}"
    if not file.endswith(".js"):
        return
    for pattern in FORBIDDEN:
        if found := re.search(pattern, text):
            yield f"{file} makes markup or runs text: {found[0]}"
    # Preact does not stop `javascript:`; the policy of the page does, and no address is made elsewhere.
    for made in re.findall(r"""\b(?:href|src|action|formaction)=(?!\$\{href\()(\S{0,30})""", text):
        if not made.startswith('"#main"'):
            yield f"{file} has an address that does not come from the route function: {made}"
    if not text.startswith("/**"):
        yield f"{file} does not begin with a comment that says what the module is for"
    if (lines := text.count("\n")) > MOST_LINES:
        yield f"{file} has {lines} lines; at most {MOST_LINES} are allowed"


def test_all_imports_resolve_and_the_page_preloads_them() -> None:
    all_files = files()
    for path in (name(source) for source in SOURCES):
        text = all_files[path].decode()
        missing = [one for one in imports_of(path, text) if one not in all_files]
        assert missing == [], path
        dynamic = re.findall(r"""\bimport\(\s*["']([^"']+)["']""", text)
        assert [
            one
            for one in dynamic
            if posixpath.normpath(posixpath.join(posixpath.dirname(path), one)) not in all_files
        ] == [], path
        # What our reader of imports does not see, no preload would name.
        bare = re.findall(r"""^\s*(?:import|export)\b[^;]*?from\s*["']([^"']+)["']""", text, re.MULTILINE)
        assert [one for one in bare if not one.startswith(("./", "../"))] == [], path
    needed = modules_of(all_files)
    unused = {name(source) for source in SOURCES} - set(needed)
    assert unused == set(), "no module imports these"
    assets = Assets(all_files)
    index = assets.index.decode()
    for module in needed:
        assert f'href="a/{assets.version}/{module}"' in index
    assert "{{" not in index


def test_the_page_has_no_script_and_no_style_inside() -> None:
    index = (CONSOLE / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)", index) == []
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=", index) == []
    for linked in re.findall(r'"\{\{assets\}\}/([^"]+)"', index):
        assert (CONSOLE / linked).is_file(), linked


def test_all_files_together_are_small() -> None:
    packed = {path: len(gzip.compress(content, 9)) for path, content in files().items() if is_served(path)}
    assert sum(packed.values()) <= MOST_GZIP
    assert sum(size for path, size in packed.items() if path not in PLOTS) <= MOST_WITHOUT_PLOTS


def is_served(path: str) -> bool:
    return posixpath.splitext(path)[1] in TYPES or path == "index.html"


def test_git_knows_every_file_so_that_the_wheel_has_it() -> None:
    """Hatchling takes what git does not ignore."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", str(CONSOLE)],
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git clone: nothing to compare with")
    known = {(ROOT / line).relative_to(CONSOLE).as_posix() for line in listed.stdout.splitlines()}
    assert set(files()) <= known
