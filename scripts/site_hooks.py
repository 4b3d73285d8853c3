"""What mkdocs asks while it builds the site: pages that live outside of docs/, links to files that are no
pages, and the order of pages, which is that of docs/README.md."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).resolve().parent.parent
_LINK: Final = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
_PICTURE: Final = re.compile(r'((?:src|srcset)=")(?!https?:|data:)([^"]+)')
_TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)
OUTSIDE: Final = {
    "README.md": "project/readme.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "examples/README.md": "project/examples.md",
    "examples/jdbc/README.md": "project/examples-jdbc.md",
    "examples/s3/README.md": "project/examples-s3.md",
}
"""Files that become pages: path in the repository → page of the site."""
_PAGES: Final = {page: source for source, page in OUTSIDE.items()}


def on_files(files: Files, config: Any) -> Files:
    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    for aim in _linked():
        if (ROOT / aim).is_dir():
            files.append(File.generated(config, _page(aim), content=_list_of(aim)))
        elif not aim.startswith("docs/"):
            files.append(File.generated(config, _page(aim), abs_src_path=str(ROOT / aim)))
    config.nav = _nav()
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links as they are right in the repository, made right on the site."""
    here = page.file.src_uri
    source = _PAGES.get(here, f"docs/{here}")
    if here.endswith("/index.md"):
        return markdown
    markdown = _LINK.sub(lambda link: _target(source, here, link[1]) + (link[2] or ""), markdown)
    return _PICTURE.sub(lambda link: link[1] + _target(source, here, link[2]), markdown)


def _linked() -> list[str]:
    """Files and folders of the repository that pages link to and that are no pages themselves."""
    found = set()
    for source in [*OUTSIDE, *(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]:
        for link in _LINK.finditer((ROOT / source).read_text()):
            aim = _aim(source, link[1])
            if (ROOT / aim).exists() and aim not in OUTSIDE and f"{aim}/README.md" not in OUTSIDE:
                found.add(aim)
    folders = [aim for aim in found if (ROOT / aim).is_dir() and not aim.startswith("docs/")]
    inside = {
        str(file.relative_to(ROOT)) for aim in folders for file in (ROOT / aim).iterdir() if file.is_file()
    }
    return sorted(found | inside)


def _list_of(folder: str) -> str:
    """The page of a folder: what is in it."""
    within = sorted(file for file in (ROOT / folder).iterdir() if file.is_file() and file.name != "README.md")
    rows = "\n".join(f"* [{_title(file)}]({file.name})" for file in within)
    return f"# {folder.removeprefix('docs/').capitalize()}\n\n{rows}\n"


def _aim(source: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def _page(aim: str) -> str:
    """Where a file or folder of the repository is on the site."""
    if f"{aim}/README.md" in OUTSIDE or (ROOT / aim / "README.md").is_file():
        aim = f"{aim}/README.md"
    if aim in OUTSIDE:
        return OUTSIDE[aim]
    place = aim.removeprefix("docs/") if aim.startswith("docs/") else f"project/files/{aim}"
    return f"{place}/index.md" if (ROOT / aim).is_dir() else place


def _target(source: str, here: str, link: str) -> str:
    return posixpath.relpath(_page(_aim(source, link)), posixpath.dirname(here) or ".")


def _nav() -> list[Any]:
    """The sections of docs/README.md, in its order; then what it does not list, so that no page is lost."""
    nav: list[Any] = [{"All pages": "README.md"}]
    listed = {"README.md"}
    for title, text in re.findall(r"^(\w[^\n]*):\n\n(\|.*?)(?=\n\n|\Z)", _index(), re.MULTILINE | re.DOTALL):
        pages: list[Any] = []
        for name, link in re.findall(r"\[([^\]]+)\]\(([^)#]+)\)", text):
            page = _target("docs/README.md", "README.md", link)
            if page not in listed:
                listed.add(page)
                pages.append({name: page})
        nav.append({title: pages})
    decisions = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    nav.append({"Decisions": [f"decisions/{page.name}" for page in decisions]})
    listed.update(f"decisions/{page.name}" for page in decisions)
    written = sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))
    folders = [_page(aim) for aim in _linked() if (ROOT / aim).is_dir()]
    rest = [page for page in [*written, *folders, *OUTSIDE.values()] if page not in listed]
    return [*nav, {"More": list(dict.fromkeys(rest))}]


def _index() -> str:
    return (ROOT / "docs" / "README.md").read_text()


def _title(file: Path) -> str:
    found = _TITLE.search(file.read_text()) if file.suffix == ".md" else None
    return (
        f"{file.name[:3]}: {found[1]}"
        if found and file.name[0].isdigit()
        else found[1]
        if found
        else file.name
    )
