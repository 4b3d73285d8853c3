"""All tables of a job are found, or nobody says that these are all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from icestream.api.errors import SinkUnavailable
from icestream.connectors.iceberg.named_tables import tables_of_job
from tests.unit.connectors.iceberg.maintained import SCHEMA, Job, new_catalog


def test_a_table_that_cannot_be_asked_now_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = new_catalog(tmp_path)
    Job(catalog).commit()
    catalog.create_table("ns.other", SCHEMA)
    assert tables_of_job(catalog, "job") == ["ns.t"]
    load, errors = catalog.load_table, [Exception()]

    def fails(table: Any) -> Any:
        if table == ("ns", "other"):
            raise errors[-1]
        return load(table)

    monkeypatch.setattr(catalog, "load_table", fails)
    errors.append(OSError("the storage is away"))
    with pytest.raises(SinkUnavailable, match=r"ns\.other"):
        tables_of_job(catalog, "job")
    # Of one whose metadata is gone, or that is not for us, nobody can say more, ever.
    for error in (FileNotFoundError("no such file"), PermissionError("not for you"), ValueError("no table")):
        errors.append(error)
        assert tables_of_job(catalog, "job") == ["ns.t"]
