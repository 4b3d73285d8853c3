"""Spark SQL over the catalogs of connectors. Called by `icestream sql` and the demo.

The one place that needs Iceberg's Spark runtime. `jars_for` tells which jars; the caller fetches them and
hands them over as `spark.jars`.
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
from icestream.api.errors import IcestreamError
from icestream.connectors.iceberg.catalogs import first_line
from icestream.connectors.iceberg.java_catalogs import java_catalog
from icestream.pipeline.session import open_session

_RUNTIME: Final = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
_SQLITE: Final = "org.xerial:sqlite-jdbc:3.50.3.0"
_POSTGRESQL: Final = "org.postgresql:postgresql:42.7.8"
_AWS: Final = "org.apache.iceberg:iceberg-aws-bundle:1.12.0"
_EXTENSIONS: Final = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_CATALOG_CLASS: Final = "org.apache.iceberg.spark.SparkCatalog"

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
    return open_session({**sql_settings(configs), **spark_conf})


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
    settings = {"spark.sql.extensions": _EXTENSIONS}
    found: dict[str, Mapping[str, str]] = {}
    for config in configs:
        catalog = java_catalog(config)
        if found.setdefault(catalog.name, catalog.properties) != catalog.properties:
            raise IcestreamError(
                f"two connectors mean different catalogs by '{catalog.name}'; name one of them with --config"
            )
        prefix = f"spark.sql.catalog.{catalog.name}"
        settings[prefix] = _CATALOG_CLASS
        # Else a session that stays open shows tables as they were up to half a minute ago.
        settings[f"{prefix}.cache-enabled"] = "false"
        settings |= {f"{prefix}.{key}": value for key, value in catalog.properties.items()}
    if len(found) == 1:
        settings["spark.sql.defaultCatalog"] = next(iter(found))
    return settings


def jars_for(configs: Sequence[Config]) -> list[str]:
    """The Maven coordinates that Spark needs to open the catalogs and read their tables."""
    needed = [_RUNTIME]
    for config in configs:
        catalog = java_catalog(config)
        uri = catalog.properties.get("uri", "")
        if uri.startswith("jdbc:sqlite:"):
            needed.append(_SQLITE)
        if uri.startswith("jdbc:postgresql:"):
            needed.append(_POSTGRESQL)
        if catalog.may_use_s3:
            needed.append(_AWS)
    return list(dict.fromkeys(needed))


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
        return first_line(str(java.toString()))
    return first_line(str(error) or type(error).__name__)
