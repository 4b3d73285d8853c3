"""`icestream verify`, as far as it goes without tables; `tests/integration/test_worker.py` has the rest."""

from __future__ import annotations

from typing import Any


def test_a_connector_without_tables_is_refused(cli: Any, tmp_path: Any) -> None:
    file = tmp_path / "sink.properties"
    file.write_text("name=files\nconnector.class=FileStreamSink\ntopics=t\n")
    ran = cli("verify", "files", "--config", str(file))
    assert (ran.code, ran.err) == (
        1,
        "icestream: connector 'files' has no table whose rows could be counted; name an Iceberg sink\n",
    )
