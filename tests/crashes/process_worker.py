"""A worker whose jobs run in processes that kill themselves, or it, at chosen points: `job_child.py`.

Arguments: the spec of the children, then those of `icestream`.
"""

from __future__ import annotations

import sys

from icestream.cli.main import run
from icestream.jobs import build
from icestream.jobs.processes import process_manager

if __name__ == "__main__":
    spec, *arguments = sys.argv[1:]
    vars(build)["COMMAND"] = (sys.executable, "-m", "tests.crashes.job_child", spec)
    # Here a process that ends soon after its start is no reason to wait.
    vars(process_manager)["_LONGEST_PAUSE"] = 0.1
    sys.exit(run(arguments))
