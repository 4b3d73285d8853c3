"""`icestream verify`, as far as it goes without tables; `tests/integration/test_worker.py` has the rest."""

from __future__ import annotations

import json
from typing import Any

from icestream.embedded.ports import free_port


def test_a_source_is_refused(cli: Any, tmp_path: Any) -> None:
    file = tmp_path / "source.properties"
    file.write_text("name=files\nconnector.class=FileStreamSource\ntopic=t\n")
    ran = cli("verify", "files", "--config", str(file))
    assert (ran.code, ran.err) == (
        1,
        "icestream: connector 'files' is a source, which lands nothing; name a sink\n",
    )


def test_a_catalog_that_does_not_answer_is_told_apart_from_rows_that_are_missing(
    cli: Any, tmp_path: Any
) -> None:
    config = tmp_path / "sink.json"
    config.write_text(
        json.dumps(
            {
                "name": "apilogs",
                "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
                "topics": "apilogs",
                "iceberg.tables": "streaming.apilogs",
                "iceberg.catalog.type": "rest",
                "iceberg.catalog.uri": f"http://127.0.0.1:{free_port()}",
            }
        )
    )
    answer = cli("verify", "apilogs", "--config", str(config), "--bootstrap-servers", "127.0.0.1:1")
    assert answer.code == 1
    assert "cannot be reached (Connection refused); nothing was compared" in answer.err
