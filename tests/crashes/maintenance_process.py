"""The maintenance of one table in a process of its own, which kills itself at a chosen point.

Started by `test_maintenance_kills.py` with the folder of the table and the point. Points: those of the
maintenance itself, and `sending` and `accepted` around the catalog's answer to each of its commits.
"""

from __future__ import annotations

import datetime as dt
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from icestream.connectors.iceberg.maintenance.settings import maintenance_of
from icestream.connectors.iceberg.maintenance.steps import TableMaintainer
from tests.crashes.faults import Fault, Faults
from tests.unit.connectors.iceberg.maintained import new_catalog

CONFIG = {
    "icestream.maintenance.enabled": "true",
    "icestream.maintenance.compaction.min-files": "4",
    "icestream.maintenance.expire.older-than-ms": "0",
    "icestream.maintenance.expire.retain-last": "1",
}


def maintainer(folder: Path, faults: Faults) -> TableMaintainer:
    catalog: Any = new_catalog(folder)
    commit_table = catalog.commit_table

    def sent(*arguments: Any) -> Any:
        faults.reached("sending")
        answer = commit_table(*arguments)
        faults.reached("accepted")
        return answer

    catalog.commit_table = sent
    return TableMaintainer(
        lambda: catalog.load_table("ns.t"),
        "ns.t",
        "job",
        maintenance_of(CONFIG, "ns.t"),
        write_props={},
        reached=faults.reached,
    )


def main(folder: str, point: str, turn: str) -> None:
    now = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=1)
    faults = Faults([Fault(point, "kill", int(turn))])
    maintainer(Path(folder), faults).run(now, thorough=True, turn=nullcontext())


if __name__ == "__main__":
    main(*sys.argv[1:])
