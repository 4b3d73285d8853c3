"""`icestream dlq replay` in a process of its own, which kills itself at a chosen point.

Started by `test_replay.py` with a JSON file: arguments of the command, faults. Points, each for every
transaction: `begun`, `delivered` (Kafka has its records, and does not count them yet), `done`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from icestream.cli import main as cli
from icestream.kafka.transactions import Sending, Transactions
from tests.crashes.faults import Fault, Faults


def spoil(faults: Faults) -> None:
    write, finish = Transactions.write, Sending.finish

    def spoiled_write(self: Transactions, *args: Any) -> int:
        faults.reached("begun")
        last = write(self, *args)
        faults.reached("done")
        return last

    def spoiled_finish(self: Sending) -> None:
        finish(self)
        faults.reached("delivered")

    members: Any = Transactions
    members.write = spoiled_write
    sending: Any = Sending
    sending.finish = spoiled_finish


if __name__ == "__main__":
    spec = json.loads(Path(sys.argv[1]).read_text())
    spoil(Faults([Fault(*fault) for fault in spec["faults"]]))
    sys.exit(cli.run(spec["arguments"]))
