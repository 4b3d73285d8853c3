"""Writes the settings of the connectors into docs/connectors/*.md, from the tables in the code: `make docs`.

A page has a pair of comments for each table, `<!-- settings: CLASS -->` and `<!-- end -->`; what stands
between them is written anew. What `validate` says of a key is told with it.
"""

from __future__ import annotations

import re
from pathlib import Path

from icestream.api.config import Setting
from icestream.api.connector import ConnectorPlugin
from icestream.cluster.configs.reports import text_of
from icestream.plugins import find_connector

PAGES = Path(__file__).parents[1] / "docs" / "connectors"
_TABLE = re.compile(r"(<!-- settings: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
_NOT_YET = "not supported by this version"


def page_with_settings(text: str) -> str:
    """The page with its tables as the code has them."""
    return _TABLE.sub(lambda found: f"{found[1]}{_table(find_connector(found[2]).plugin)}{found[3]}", text)


def _table(plugin: ConnectorPlugin) -> str:
    rows = [_row(plugin, setting) for setting in plugin.settings.settings]
    free = ", ".join(f"`{prefix}*`" for prefix in plugin.settings.prefixes)
    lines = ["| key | type | default | |", "|---|---|---|---|", *rows]
    return "\n".join([*lines, *([f"\nAnd keys under {free}."] if free else [])]) + "\n"


def _row(plugin: ConnectorPlugin, setting: Setting) -> str:
    default = "required" if setting.is_required else text_of(setting.default) or ""
    words = " ".join([setting.doc, *_remarks(plugin, setting)])
    return f"| `{setting.name}` | {setting.type.lower()} | {default} | {words} |"


def _remarks(plugin: ConnectorPlugin, setting: Setting) -> list[str]:
    """What the plugin says of a config that sets the key."""
    given = {setting.name: "true" if setting.type == "BOOLEAN" else "1"}
    mark = f"'{setting.name}' has no effect: "
    found = [
        f"**No effect**: {one.removeprefix(mark)}." for one in plugin.warnings(given) if one.startswith(mark)
    ]
    if any(one.key == setting.name and _NOT_YET in one.message for one in plugin.problems(given)):
        found.append("**Not supported yet**: refused.")
    return found


if __name__ == "__main__":
    for page in sorted(PAGES.glob("*.md")):
        page.write_text(page_with_settings(page.read_text()))
