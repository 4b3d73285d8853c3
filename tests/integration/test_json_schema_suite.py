"""The official JSON-Schema-Test-Suite through our checks, as text and as values.

It comes in the source archive of PyPI's jsonschema, with the documents that its references need.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from icestream.embedded.home import home
from icestream.validation.schema import Document, checked
from icestream.validation.validator import Rules

pytestmark = [pytest.mark.network, pytest.mark.slow]

_VERSION: Final = "4.26.0"
_DOWNLOAD_S: Final = 600
_REMOTES: Final = "http://localhost:1234/"
_DRAFTS: Final = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
_LEAST: Final = {"draft7": 1_400, "draft2020-12": 1_800}
_WE_ASSERT_FORMATS: Final = "string is only an annotation by default"
"""Cases of 2020-12, where asserting formats is the validator's choice: ours is to do so."""


@dataclass(frozen=True)
class Case:
    name: str
    document: Document
    records: list[Any]
    valid: list[bool]


@pytest.fixture(scope="module")
def suite() -> Path:
    folder = home() / "json-schema-test-suite" / _VERSION
    if not folder.is_dir():
        _download(folder)
    return folder / f"jsonschema-{_VERSION}" / "json"


def _download(folder: Path) -> None:
    draft = folder.with_name(f".{_VERSION}")
    draft.mkdir(parents=True, exist_ok=True)
    wanted = ("--no-deps", "--no-binary", ":all:", f"jsonschema=={_VERSION}")
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "-d", str(draft), *wanted],
        check=True,
        stdin=subprocess.DEVNULL,
        timeout=_DOWNLOAD_S,
    )
    with tarfile.open(draft / f"jsonschema-{_VERSION}.tar.gz") as archive:
        archive.extractall(draft, filter="data")
    draft.rename(folder)


@pytest.fixture(scope="module")
def remotes(suite: Path) -> Mapping[str, Any]:
    folder = suite / "remotes"
    return {
        f"{_REMOTES}{file.relative_to(folder).as_posix()}": json.loads(file.read_text())
        for file in folder.rglob("*.json")
    }


def _cases(suite: Path, draft: str, remotes: Mapping[str, Any]) -> Iterator[Case]:
    for file in sorted((suite / "tests" / draft).rglob("*.json")):
        for group in json.loads(file.read_text()):
            schema = group["schema"]
            if isinstance(schema, dict):
                schema = {"$schema": _DRAFTS[draft], **schema}
            tests = [one for one in group["tests"] if _WE_ASSERT_FORMATS not in one["description"]]
            yield Case(
                f"{file.name}: {group['description']}",
                checked(json.dumps(schema), None, remotes.__getitem__),
                [one["data"] for one in tests],
                [one["valid"] for one in tests],
            )


@pytest.mark.parametrize("draft", _DRAFTS)
def test_every_case_agrees(draft: str, suite: Path, remotes: Mapping[str, Any]) -> None:
    count = 0
    for case in _cases(suite, draft, remotes):
        rules = Rules(case.document)
        texts = [json.dumps(record).encode() for record in case.records]
        expected = {at: valid for at, valid in enumerate(case.valid) if not valid}.keys()
        assert rules.broken_by_text(texts).keys() == expected, case.name
        assert rules.broken_by(case.records).keys() == expected, case.name
        count += len(texts)
    assert count >= _LEAST[draft]


@pytest.mark.parametrize("draft", _DRAFTS)
def test_every_case_agrees_as_a_field(draft: str, suite: Path, remotes: Mapping[str, Any]) -> None:
    """Schemas that mean the same anywhere, as that of a field beside one that is not used."""
    count = 0
    for case in _cases(suite, draft, remotes):
        inner = case.document.schema
        if isinstance(inner, dict):
            inner = {key: rule for key, rule in inner.items() if key != "$schema"}
        if '"$' in json.dumps(inner):
            continue
        whole = {"$schema": _DRAFTS[draft], "type": "object", "properties": {"a~ b": inner}}
        rules = Rules(Document(whole))
        records = [json.dumps({"a~ b": record, "other": 1}).encode() for record in case.records]
        expected = {at for at, valid in enumerate(case.valid) if not valid}
        assert rules.broken_by_text([*records, b"{}"]).keys() == expected, case.name
        count += len(records)
    assert count >= _LEAST[draft] // 2
