"""Spark SQL over the catalogs of connectors. Called by `icestream sql` and the demo.

A connector says by which catalog Spark reads its tables. `jars_for` tells which jars that needs; the caller
fetches them and hands them over as `spark.jars`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from icestream.api.config import Config
from icestream.api.connector import SparkCatalog
from icestream.api.errors import IcestreamError
from icestream.pipeline.session import QUERY_JVM, open_session
from icestream.plugins import find_connector

_PIECE: Final = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|--[^\n]*|/\*.*?\*/|;|[^'"`;/-]+|.""", re.DOTALL
)


@dataclass(frozen=True)
class Result:
    """What one statement answered; no columns if it answers nothing."""

    statement: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def run_sql(
    configs: Sequence[Config], statements: Sequence[str], spark_conf: Mapping[str, str]
) -> list[Result]:
    """Run statements one after the other over the catalogs of connector configs."""
    return list(run_statements(open_sql_session(configs, spark_conf), statements))


def open_sql_session(configs: Sequence[Config], spark_conf: Mapping[str, str]) -> SparkSession:
    """This process's Spark session with the catalogs; an open one must have been started with the jars."""
    return open_session({**QUERY_JVM, **sql_settings(configs), **spark_conf})


def run_statements(spark: SparkSession, statements: Sequence[str]) -> Iterator[Result]:
    """The answer to each statement, as it comes; the first that Spark refuses ends it with one sentence."""
    # pyspark would print each error with Java's trace, before we say it in a sentence.
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    for statement in statements:
        try:
            answer = spark.sql(statement)
            rows = tuple(tuple(row) for row in answer.collect())
        except (PySparkException, Py4JError) as error:
            raise IcestreamError(f"Spark refused `{_shortened(statement)}`: {_reason(error)}") from error
        yield Result(statement, tuple(answer.columns), rows)


def sql_settings(configs: Sequence[Config]) -> dict[str, str]:
    """Spark's settings for the catalogs of connector configs; a single one is the default catalog."""
    settings: dict[str, str] = {}
    found: dict[str, Mapping[str, str]] = {}
    catalogs = spark_catalogs(configs)
    if extensions := {one.extensions: None for one in catalogs if one.extensions}:
        settings["spark.sql.extensions"] = ",".join(extensions)
    for catalog in catalogs:
        if found.setdefault(catalog.name, catalog.properties) != catalog.properties:
            raise IcestreamError(
                f"two connectors mean different catalogs by '{catalog.name}'; name one of them with --config"
            )
        prefix = f"spark.sql.catalog.{catalog.name}"
        settings[prefix] = catalog.class_name
        settings |= {f"{prefix}.{key}": value for key, value in catalog.properties.items()}
    if len(found) == 1:
        settings["spark.sql.defaultCatalog"] = next(iter(found))
    return settings


def jars_for(configs: Sequence[Config]) -> list[str]:
    """The Maven coordinates that Spark needs to open the catalogs and read their tables."""
    return list(dict.fromkeys(jar for catalog in spark_catalogs(configs) for jar in catalog.jars))


def spark_catalogs(configs: Sequence[Config]) -> list[SparkCatalog]:
    """The catalogs of the connectors that have one."""
    asked = [(find_connector(config.get("connector.class", "")).plugin, config) for config in configs]
    return [found for plugin, config in asked if (found := plugin.spark_catalog(config))]


def split_statements(text: str) -> list[str]:
    """The statements of a text, split at each `;` that is not in quotes or in a comment."""
    statements, current, has_code = [], "", False
    for piece in _PIECE.findall(text):
        if piece == ";":
            if has_code:
                statements.append(current.strip())
            current, has_code = "", False
            continue
        has_code = has_code or not (piece.isspace() or piece.startswith(("--", "/*")))
        current += piece
    return [*statements, current.strip()] if has_code else statements


def _shortened(statement: str) -> str:
    line = " ".join(statement.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


def _reason(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    if java is not None:
        return _first_line(str(java.toString()))
    return _first_line(str(error) or type(error).__name__)


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "no reason given"
