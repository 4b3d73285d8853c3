"""A catalog server lends logins that end: a job asks for a new one before it writes with an old one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.table import IcebergTable
from tests.crashes.rest_catalog import SilentCatalog


class LendingCatalog(SilentCatalog):
    """Each table that is loaded comes with keys of its own, which end after so many seconds."""

    seconds = 3600.0
    lent = 0

    def answer(self, path: str, body: bytes) -> tuple[int, object]:
        code, answer = super().answer(path, body)
        if isinstance(answer, dict) and "metadata" in answer and not body:
            self.lent += 1
            answer["config"] = {
                "s3.access-key-id": f"key-{self.lent}",
                "s3.secret-access-key": "secret",
                "s3.session-token": "session",
                "s3.session-token-expires-at-ms": str(int((time.time() + self.seconds) * 1000)),
            }
        return code, answer


@pytest.fixture
def lending(tmp_path: Path) -> LendingCatalog:
    behind = open_catalog(
        {
            "iceberg.catalog.type": "jdbc",
            "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
            "iceberg.catalog.warehouse": f"file://{tmp_path}/warehouse",
        }
    )
    behind.create_namespace("ns")
    behind.create_table("ns.t", Schema(NestedField(1, "id", LongType())))
    return LendingCatalog(behind)


def test_a_login_that_ends_soon_is_not_given_to_tasks(lending: LendingCatalog) -> None:
    with lending.serve() as address:
        catalog = open_catalog({"iceberg.catalog.type": "rest", "iceberg.catalog.uri": address})
        table = IcebergTable(catalog, "ns.t", "job", write_props={})

        def key() -> str:
            return str(table.plan({}).io_properties["s3.access-key-id"])

        assert [key(), key()] == ["key-1", "key-1"]
        lending.seconds = 60
        table.found()
        assert key() == "key-3", "the second ends in a minute: the third was asked for"
        lending.seconds = 3600
        assert [key(), key()] == ["key-4", "key-4"]
