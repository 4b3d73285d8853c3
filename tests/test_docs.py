"""The docs tell the truth: commands, links and figures."""

import json
import re
from pathlib import Path

import click
import pytest

from icestream.api.connector_settings import SINK_CONNECTOR
from icestream.api.source_settings import SOURCE_CONNECTOR
from icestream.cli import main
from icestream.cluster.settings.worker_settings import DISTRIBUTED, STANDALONE
from icestream.converters.catalog import CONVERTERS, VERSION, ConverterPlugin
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

ROOT = Path(__file__).parent.parent
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for part in ("docs", "examples") for page in sorted((ROOT / part).rglob("*.md"))),
]
CONNECTOR_PAGES = sorted((ROOT / "docs" / "connectors").glob("*.md"))
COMMANDS = sorted(main.COMMANDS)
OUR_SETTINGS = {
    name
    for known in (STANDALONE, DISTRIBUTED, SINK_CONNECTOR, SOURCE_CONNECTOR)
    for name in known.names
    if name.startswith("icestream.")
} | {setting.name for plugin in installed().plugins for setting in plugin.worker_settings}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name: str) -> None:
    pages = ("README.md", "CHANGELOG.md", "docs/command-line.md", "docs/operations.md")
    text = "".join((ROOT / page).read_text() for page in pages if (ROOT / page).exists())
    assert re.search(rf"\bicestream {name}\b", text)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    command = main.icestream.get_command(click.Context(main.icestream), name)
    assert command is not None
    leaves = command.commands.values() if isinstance(command, click.Group) else [command]
    for leaf in leaves:
        assert leaf.help
        assert f"icestream {name}" in (leaf.epilog or command.epilog or "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://)([^)]+)\)", page.read_text()):
        path, _, heading = target.partition("#")
        aim = page.parent / path if path else page
        assert aim.exists(), f"{page.name} links to {target}"
        assert not heading or heading in _headings(aim), f"{page.name} links to {target}"


def test_every_file_that_the_architecture_names_is_there() -> None:
    files = [f"/{file.relative_to(ROOT)}" for file in (ROOT / "icestream").rglob("*.py")]
    named = re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / "architecture.md").read_text())
    assert [name for name in named if not any(file.endswith(f"/{name}") for file in files)] == []


def _headings(page: Path) -> set[str]:
    """As GitHub names them in addresses."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", sorted(OUR_SETTINGS))
def test_every_setting_of_ours_is_documented(name: str) -> None:
    assert f"`{name}" in (ROOT / "docs" / "compatibility.md").read_text()


def test_published_figures_are_those_of_the_harness() -> None:
    results = ROOT / "bench" / "results" / "latest.json"
    figures = json.loads(results.read_text())
    text = (ROOT / "docs" / "benchmark.md").read_text()
    for name in ("drain", "cpu", "memory"):
        assert f"{figures['ratio'][name]:.2f}" in text


def test_published_figures_of_one_core_are_those_of_the_harness() -> None:
    figures = json.loads((ROOT / "bench" / "results" / "records.json").read_text())
    text = (ROOT / "docs" / "benchmark.md").read_text()
    for one in figures["results"]:
        assert f"| {one['name']} | {one['records_a_second']:,} | {one['microseconds']:.2f} |" in text


@pytest.mark.parametrize("name", ["shop_transforms.py", "pyproject.toml"])
def test_the_example_of_a_users_function_is_the_one_that_is_tested(name: str) -> None:
    tested = (ROOT / "tests" / "unit" / "transforms" / "shop_transforms" / name).read_text()
    assert tested in (ROOT / "docs" / "transforms.md").read_text()


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs" / "connectors").glob("*.md")), ids=lambda page: page.stem
)
def test_settings_of_connectors_are_those_of_the_code(page: Path) -> None:
    assert page.read_text() == page_with_settings(page.read_text()), "run: make docs"


def test_variables_and_metrics_of_the_job_manager_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "job-manager.md").read_text()
    assert page == page_with_tables(page), "run: make docs"


def test_metrics_of_the_worker_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "observability.md").read_text()
    assert page == page_with_metrics(page), "run: make docs"
    assert [metric.name for metric in METRICS if f"`{metric.name}`" not in page] == []


def test_every_class_of_a_connector_has_a_page() -> None:
    pages = "".join(page.read_text() for page in CONNECTOR_PAGES)
    assert [one.class_name for one in installed().connectors if one.class_name not in pages] == []


def _section(text: str, name: str) -> str:
    """What a page says of a class: below its heading, or in its row of a table."""
    below = re.search(rf"^### {name}\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
    rows = re.findall(rf"^\| `{name}` .*$", text, re.MULTILINE)
    return (below[1] if below else "") + "".join(rows)


@pytest.mark.parametrize(
    "plugin", [*KAFKA_TRANSFORMS, *ICEBERG_TRANSFORMS[::2], *ALL_PREDICATES], ids=lambda one: one.class_name
)
def test_every_key_of_a_transform_is_explained(plugin: TransformPlugin | PredicatePlugin) -> None:
    name = plugin.class_name.rpartition(".")[2]
    told = _section((ROOT / "docs" / "transforms.md").read_text(), name)
    assert told, f"docs/transforms.md says nothing of {name}"
    assert [key for key in plugin.settings.names if f"`{key}`" not in told] == []


@pytest.mark.parametrize("plugin", CONVERTERS, ids=lambda one: one.simple_name)
def test_every_converter_is_explained(plugin: ConverterPlugin) -> None:
    page = (ROOT / "docs" / "converters.md").read_text()
    assert plugin.simple_name in page or plugin.simple_name.removesuffix("Converter") + "…" in page
    if plugin.version == VERSION:
        assert [key for key in plugin.settings.names if f"`{key}`" not in page] == []


@pytest.mark.parametrize(
    "name",
    [
        *("requirements.txt", "requirements-all.txt", "requirements-dev.txt"),
        *("requirements-build.txt", "requirements-java.txt"),
    ],
)
def test_every_dependency_is_pinned_with_hashes(name: str) -> None:
    """One line without a hash, and pip installs none of them; `make lock` writes them all."""
    text = (ROOT / name).read_text()
    entries = re.split(r"\n(?=\S)", text.strip())
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == [], "run: make lock"
    assert "://" not in text


def test_the_guide_to_connectors_shows_the_toys_as_they_are() -> None:
    guide = (ROOT / "docs" / "write-a-connector.md").read_text()
    toys = [path.read_text() for path in (ROOT / "tests" / "toys").glob("*/*") if path.is_file()]
    shown = re.findall(r"```(?:python|toml)\n(.*?)```", guide, re.DOTALL)
    assert shown
    for code in shown:
        assert any(code in toy for toy in toys), code
