"""No secret stands in the arguments of a process: everybody on the machine can read those."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from icestream.pipeline.session import launched_with

# Looks at the arguments of its own processes all the time while Spark starts, and once after a job.
PROGRAM = r"""
import json, os, sys, threading, time
from pathlib import Path
from icestream.pipeline.session import open_session

seen, ended = set(), threading.Event()

def descendants():
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {os.getpid()}
    while True:
        more = {child for child, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more

def look():
    for number in descendants():
        try:
            seen.add((Path("/proc") / str(number) / "cmdline").read_text(errors="replace"))
        except OSError:
            continue

def watch():
    while not ended.is_set():
        look()
        time.sleep(0.02)

thread = threading.Thread(target=watch)
thread.start()
settings = json.loads(sys.argv[1])
spark = open_session({**settings, "spark.hadoop.hush": os.environ["SECRET"]})
rows = spark.range(3).mapInArrow(lambda batches: batches, "id long").count()
ended.set()
thread.join()
look()
print(json.dumps({"rows": rows, "value": spark.conf.get("spark.hadoop.hush"), "seen": sorted(seen),
                  "memory": spark.conf.get("spark.driver.memory")}))
spark.stop()
"""
SECRET = "p\\ä=ss #wörd:\t€𝄞!"


def test_no_setting_of_spark_is_an_argument() -> None:
    environment = {**os.environ, "SECRET": SECRET, "PYTHONIOENCODING": "utf-8"}
    given = json.dumps({"spark.master": "local[1]", "spark.driver.memory": "512m"})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, given],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["rows"] == 3
    assert told["value"] == SECRET
    assert told["memory"] == "512m"
    launched = [one for one in told["seen"] if "org.apache.spark.deploy.SparkSubmit" in one]
    assert launched, told["seen"]
    assert any("-Xmx512m" in one for one in launched)
    assert not [one for one in told["seen"] if "wörd" in one or "spark.hadoop.hush=" in one]


def test_the_file_is_its_owners_alone_and_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--verbose pyspark-shell")
    with launched_with({"spark.a": "b"}):
        arguments = os.environ["PYSPARK_SUBMIT_ARGS"]
        file = Path(arguments.split("'")[1])
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700
        assert file.read_text() == "spark.a=b\n"
        assert arguments.endswith("--verbose pyspark-shell")
    assert not file.parent.exists()
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--verbose pyspark-shell"
