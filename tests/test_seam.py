"""Nothing outside of a connector's folder imports it or names its product.

import-linter looks at imports; here the tree is read for what a contract cannot see: imports inside of
functions, names in the code, keys and class names in texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "icestream"
PRODUCTS = re.compile(
    r"iceberg|tabular|FileStream|JdbcS|S3Sink|\bdelta\b|DeltaS|connectors\.(?:iceberg|file|jdbc|s3|delta)\b",
    re.IGNORECASE,
)

HOMES = ("connectors/", "transforms/", "stack/")
"""Connectors are at home there. Transforms have the Java names that the products gave them. The stack is the
deployment of one product."""

EXCEPTIONS = {
    "cli/demo.py": "the demo shows one product",
    "cli/demo_stack.py": "the demo shows one product",
    "embedded/minio_tables.py": "the demo's tables",
    "embedded/nginx.py": "a path of the stack's catalog",
    "embedded/rest_catalog.py": "the stack's catalog",
    "embedded/signed_front.py": "a path of the stack's catalog",
    "embedded/sigv4.py": "a client that writes a header in its own way",
    "embedded/trino.py": "the plugin of Trino that the stack needs",
    "cli/stack.py": "a path of the stack's catalog",
    "cli/main.py": "what the command line says of itself, and of the demo",
    "cli/connector.py": "names of connectors in examples",
    "cli/connector_topics.py": "names of connectors in examples",
    "cli/connectors.py": "names of connectors in examples",
    "cli/plugins.py": "a class in an example",
    "cli/sql.py": "a key in the help",
    "cli/standalone.py": "names of connectors in examples",
    "cli/verify.py": "names of connectors in examples",
    "operator/manifests/labels.py": "a label by which people find the pods of job managers",
    "logs/setup.py": "a library whose loggers say much",
}
"""Files that may name a product, and why."""


def sources() -> list[str]:
    files = (path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
    return sorted(path for path in files if not path.startswith(HOMES))


def named(path: str) -> Iterator[str]:
    for number, line in enumerate((PACKAGE / path).read_text().splitlines(), 1):
        if PRODUCTS.search(line):
            yield f"icestream/{path}:{number}: {line.strip()}"


def test_no_product_is_named() -> None:
    named_in = {path: list(named(path)) for path in sources()}
    assert [line for path, lines in named_in.items() if path not in EXCEPTIONS for line in lines] == []
    assert [path for path in EXCEPTIONS if not named_in.get(path)] == [], "these need no exception any more"


def test_only_the_demo_imports_a_connector() -> None:
    importing = re.compile(r"^\s*(?:from|import) icestream\.connectors", re.MULTILINE)
    found = [path for path in sources() if importing.search((PACKAGE / path).read_text())]
    assert found == ["cli/demo_stack.py"]
