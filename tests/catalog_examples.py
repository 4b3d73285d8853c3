"""The examples of `docs/iceberg-catalogs.md`, by their headings: the tests use what the page shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

_PAGE: Final = Path(__file__).parent.parent / "docs" / "iceberg-catalogs.md"


def examples() -> dict[str, dict[str, str]]:
    found = re.findall(r"^##+ ([^\n]+)\n+```json\n(.+?)\n```", _PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return {heading: json.loads(text) for heading, text in found}


def example(heading: str, **here: str) -> dict[str, str]:
    """One, with the values of this machine for `uri`, `s3_endpoint` and such in place of the page's."""
    shown = examples()[heading]
    own = {
        f"iceberg.{key.replace('__', '-').replace('_', '.')}"
        if key.startswith("hadoop")
        else f"iceberg.catalog.{key.replace('__', '-').replace('_', '.')}": value
        for key, value in here.items()
    }
    assert own.keys() <= shown.keys(), "what a test replaces is in the example"
    return {**shown, **own}
