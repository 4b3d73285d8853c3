"""The docs say what the code does: links, commands, settings, figures. A test lists all that is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from icestream.api.connector_settings import SINK_CONNECTOR
from icestream.api.source_settings import SOURCE_CONNECTOR
from icestream.cli import main
from icestream.cluster.settings.worker_settings import DISTRIBUTED, STANDALONE
from icestream.connectors.iceberg.settings import WITHOUT_EFFECT as ICEBERG_WITHOUT_EFFECT
from icestream.connectors.jdbc.source.keys import WITHOUT_EFFECT as JDBC_SOURCE_WITHOUT_EFFECT
from icestream.connectors.s3.keys import WITHOUT_EFFECT as S3_WITHOUT_EFFECT
from icestream.converters.catalog import CONVERTERS, VERSION
from icestream.metrics.catalog import METRICS
from icestream.plugins import installed
from icestream.transforms.catalog import (
    ALL_PREDICATES,
    ICEBERG_TRANSFORMS,
    KAFKA_TRANSFORMS,
    PredicatePlugin,
    TransformPlugin,
)
from scripts.connector_docs import page_with_settings
from scripts.job_manager_docs import page_with_tables
from scripts.observability_docs import page_with_metrics
from tests.kit.faults import assert_no_faults, difference

ROOT: Final = Path(__file__).parent.parent
DOCS: Final = ROOT / "docs"
PAGES: Final = [
    *sorted(ROOT.glob("*.md")),
    *(page for part in ("docs", "examples") for page in sorted((ROOT / part).rglob("*.md"))),
]
CONNECTOR_PAGES: Final = sorted((DOCS / "connectors").glob("*.md"))


# -- links --


def test_every_link_leads_somewhere() -> None:
    assert_no_faults(fault for page in PAGES for fault in broken_links(page))


def test_links_to_no_file_and_to_no_heading_are_broken(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A heading: *of two* parts\n[a](none.md) [b](#no-heading) [c](#a-heading-of-two-parts)")
    named = [fault.partition(" links to ")[2] for fault in broken_links(page)]
    assert named == ["none.md, and there is no such file", "#no-heading, and there is no such heading"]


def broken_links(page: Path) -> Iterator[str]:
    for target in re.findall(r"\]\((?!https?://)([^)]+)\)", page.read_text()):
        path, _, heading = target.partition("#")
        aim = page.parent / path if path else page
        if not aim.exists():
            yield f"{_name(page)} links to {target}, and there is no such file"
        elif heading and heading not in _headings(aim):
            yield f"{_name(page)} links to {target}, and there is no such heading"


def _headings(page: Path) -> set[str]:
    """As GitHub names them in addresses."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else page.name


def test_every_file_that_the_architecture_names_is_there() -> None:
    files = [f"/{file.relative_to(ROOT)}" for file in (ROOT / "icestream").rglob("*.py")]
    named = re.findall(r"`([\w/]+\.py)`", (DOCS / "architecture.md").read_text())
    assert [name for name in named if not any(file.endswith(f"/{name}") for file in files)] == []


# -- what is to be found in the docs --


def test_commands_settings_and_classes_are_documented() -> None:
    assert_no_faults(
        [
            *undocumented_commands(),
            *undocumented_settings(),
            *undocumented_connectors(),
            *undocumented_transforms(),
            *undocumented_converters(),
        ]
    )


def undocumented_commands() -> Iterator[str]:
    text = "".join(
        (ROOT / page).read_text()
        for page in ("README.md", "CHANGELOG.md", "docs/command-line.md", "docs/operations.md")
    )
    for name in sorted(main.COMMANDS):
        if not re.search(rf"\bicestream {name}\b", text):
            yield f"docs/command-line.md does not show icestream {name}"
        command = main.icestream.get_command(click.Context(main.icestream), name)
        assert command is not None
        for leaf in command.commands.values() if isinstance(command, click.Group) else [command]:
            if not leaf.help:
                yield f"icestream {name}: {leaf.name} has no help"
            if f"icestream {name}" not in (leaf.epilog or command.epilog or ""):
                yield f"icestream {name}: the help of {leaf.name} ends without an example"


def undocumented_settings() -> Iterator[str]:
    common = (STANDALONE, DISTRIBUTED, SINK_CONNECTOR, SOURCE_CONNECTOR)
    ours = {name for known in common for name in known.names if name.startswith("icestream.")}
    ours |= {setting.name for plugin in installed().plugins for setting in plugin.worker_settings}
    without_effect = [*ICEBERG_WITHOUT_EFFECT, *S3_WITHOUT_EFFECT, *JDBC_SOURCE_WITHOUT_EFFECT]
    page = (DOCS / "compatibility.md").read_text()
    yield from (
        f"docs/compatibility.md does not name `{name}`" for name in sorted(ours) if f"`{name}" not in page
    )
    yield from (
        f"docs/compatibility.md does not name `{name}`, which has no effect"
        for name in without_effect
        if f"`{name}`" not in page
    )


def undocumented_connectors() -> Iterator[str]:
    pages = "".join(page.read_text() for page in CONNECTOR_PAGES)
    for one in installed().connectors:
        if one.class_name not in pages:
            yield f"no page of docs/connectors names {one.class_name}"


def undocumented_transforms() -> Iterator[str]:
    page = (DOCS / "transforms.md").read_text()
    plugins: list[TransformPlugin | PredicatePlugin]
    plugins = [*KAFKA_TRANSFORMS, *ICEBERG_TRANSFORMS[::2], *ALL_PREDICATES]
    for plugin in plugins:
        name = plugin.class_name.rpartition(".")[2]
        section = _section(page, name)
        if not section:
            yield f"docs/transforms.md has neither a heading nor a row for {name}"
        else:
            yield from _unnamed(f"docs/transforms.md: {name}", plugin.settings.names, section)


def _section(text: str, name: str) -> str:
    """What a page says of a class: below its heading, or in its row of a table."""
    below = re.search(rf"^### {name}\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
    rows = re.findall(rf"^\| `{name}` .*$", text, re.MULTILINE)
    return (below[1] if below else "") + "".join(rows)


def undocumented_converters() -> Iterator[str]:
    page = (DOCS / "converters.md").read_text()
    for plugin in CONVERTERS:
        name = plugin.simple_name
        if name not in page and name.removesuffix("Converter") + "…" not in page:
            yield f"docs/converters.md does not name {name}"
        if plugin.version == VERSION:
            yield from _unnamed(f"docs/converters.md: {name}", plugin.settings.names, page)


def _unnamed(place: str, keys: Sequence[str], text: str) -> Iterator[str]:
    yield from (f"{place}: the key `{key}` is not explained" for key in keys if f"`{key}`" not in text)


# -- what is written by `make docs`, and what is copied --


def test_tables_of_settings_variables_and_metrics_are_those_of_the_code() -> None:
    made = dict.fromkeys(CONNECTOR_PAGES, page_with_settings)
    made |= {DOCS / "job-manager.md": page_with_tables, DOCS / "observability.md": page_with_metrics}
    texts = {page: page.read_text() for page in made}
    faults = [
        one for page, make in made.items() for one in difference(_name(page), texts[page], make(texts[page]))
    ]
    metrics = [one.name for one in METRICS if f"`{one.name}`" not in texts[DOCS / "observability.md"]]
    faults += [f"docs/observability.md does not name `{name}`" for name in metrics]
    assert_no_faults(faults, "run: make docs")


def test_published_figures_are_those_of_the_harness() -> None:
    text = (DOCS / "benchmark.md").read_text()
    ratio = json.loads((ROOT / "bench" / "results" / "latest.json").read_text())["ratio"]
    figures = [f"{ratio[name]:.2f}" for name in ("drain", "cpu", "memory")]
    figures += [
        f"| {one['name']} | {one['records_a_second']:,} | {one['microseconds']:.2f} |"
        for one in json.loads((ROOT / "bench" / "results" / "records.json").read_text())["results"]
    ]
    assert_no_faults(f"docs/benchmark.md does not have: {figure}" for figure in figures if figure not in text)


def test_examples_of_code_are_those_that_are_tested() -> None:
    faults = []
    functions = ROOT / "tests" / "unit" / "transforms" / "shop_transforms"
    page = (DOCS / "transforms.md").read_text()
    for name in ("shop_transforms.py", "pyproject.toml"):
        if (functions / name).read_text() not in page:
            faults.append(f"docs/transforms.md does not show {functions.relative_to(ROOT) / name} as it is")
    toys = [
        path.read_text() for path in (ROOT / "tests" / "toys").glob("*/*") if path.suffix in (".py", ".toml")
    ]
    guide = (DOCS / "write-a-connector.md").read_text()
    shown = re.findall(r"```(?:python|toml)\n(.*?)```", guide, re.DOTALL)
    assert shown
    faults += [
        f"docs/write-a-connector.md shows what is in no file of tests/toys:\n{code}"
        for code in shown
        if not any(code in toy for toy in toys)
    ]
    assert_no_faults(faults)


def test_every_dependency_is_pinned_with_hashes() -> None:
    """One line without a hash, and pip installs none of them; `make lock` writes them all."""
    faults = []
    for path in sorted(ROOT.glob("requirements*.txt")):
        name, text = path.name, path.read_text()
        for entry in re.split(r"\n(?=\S)", text.strip()):
            if "--hash=sha256:" not in entry:
                faults.append(f"{name}: {entry.split()[0]} has no hash")
        faults += [f"{name} names an address: {line}" for line in text.splitlines() if "://" in line]
    assert_no_faults(faults, "run: make lock")
