"""Runs the verification commands of docs/deploy/operator.md as they stand, and compares what they print.

The operator and the API server are real; kwok says that pods run, and leads `kubectl port-forward` to a
worker that is a process of this machine.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from icestream.embedded import ports
from icestream.embedded.kafka import Broker
from tests.integration.test_file_stream import ours
from tests.kit.programs import require_programs
from tests.kubernetes import operators
from tests.kubernetes.cluster import Cluster

pytestmark = pytest.mark.slow

PAGE = operators.ROOT / "docs" / "deploy" / "operator.md"
BLOCK = re.compile(r"<!-- run by: \S*test_operator_page.py -->\n```console\n(.*?)```", re.DOTALL)
CONNECT = "8083"
CHANGING = {
    r"-[a-z0-9]{6,10}-[a-z0-9]{5}(?=\s)": "-POD",
    r"(?<=\s)(\d+[smh])+(?=\s*$)": "AGE",
    r'"(version|commit|kafka_cluster_id)":"[^"]*"': r'"\1":"…"',
}
"""What is another thing in every run."""


def steps() -> list[tuple[str, str]]:
    """Commands of the page, and what it says that they print."""
    (block,) = BLOCK.findall(PAGE.read_text())
    parts = [part.partition("\n") for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(command, printed) for command, _, printed in parts]


def steady(printed: str) -> list[list[str]]:
    """Words by line: kubectl sets its columns by the longest name."""
    lines = printed.strip().splitlines()
    for pattern, instead in CHANGING.items():
        lines = [re.sub(pattern, instead, line) for line in lines]
    return [line.split() for line in lines]


def in_namespace(cluster: Cluster, namespace: str, folder: Path) -> Path:
    """The administrator's kubeconfig with another namespace, so that commands need not name it."""
    file = folder / "kubeconfig.yaml"
    shutil.copy(cluster.kubeconfig, file)
    cluster.kubectl("config", "set-context", "--current", f"--namespace={namespace}", as_file=file)
    return file


class Shell:
    """Whoever types the commands; another port of this machine may be free than the page's."""

    def __init__(self, cluster: Cluster, kubeconfig: Path) -> None:
        self._environment = cluster.environment(kubeconfig)
        self._port = str(ports.free_port())

    def printed(self, command: str) -> str:
        ran = self._run(command)
        assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
        return ran.stdout

    def is_forwarded(self, forward: str, request: str) -> bool:
        """kwok knows only a moment after it was told where a port leads."""
        with self.forwarding(forward) as line:
            return bool(line) and self._run(request).returncode == 0

    def _run(self, command: str) -> subprocess.CompletedProcess[str]:
        typed = command.replace(f"localhost:{CONNECT}", f"localhost:{self._port}")
        program, *arguments = shlex.split(typed)
        options = ["--silent", "--show-error", "--max-time", "60"] if program == "curl" else []
        return subprocess.run(
            [program, *options, *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=240,
        )

    @contextmanager
    def forwarding(self, command: str) -> Iterator[str]:
        """While it runs; the line that it prints when it is ready."""
        typed = command.replace(f"{CONNECT}:{CONNECT}", f"{self._port}:{CONNECT}")
        running = subprocess.Popen(
            shlex.split(typed),
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert running.stdout is not None
        try:
            yield running.stdout.readline().replace(f":{self._port} ", f":{CONNECT} ")
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(60)
            running.stdout.close()


def test_the_verification_commands_print_what_the_page_says(
    api_server: Cluster, account: Path, home: str, broker: Broker, tmp_path: Path
) -> None:
    require_programs("curl")
    with (
        ours(tmp_path, broker).running() as rest,
        operators.running(api_server, account, home, tmp_path),
    ):
        api_server.forward(home, int(CONNECT), urlsplit(rest.url).port or 0)
        api_server.apply(operators.an_icestream_cluster("my-cluster", "orders"), namespace=home)
        ready = ("wait", "--for=condition=Ready", "icestreamcluster/my-cluster", "-n", home)
        api_server.kubectl(*ready, "--timeout=240s")
        shell = Shell(api_server, in_namespace(api_server, home, tmp_path))
        workers, managers, forward, *requests = steps()
        for command, printed in (workers, managers):
            assert steady(shell.printed(command)) == steady(printed)
        api_server.wait_for(lambda: shell.is_forwarded(forward[0], requests[0][0]), "a way to the worker")
        with shell.forwarding(forward[0]) as line:
            assert line == forward[1]
            for command, printed in requests:
                assert steady(shell.printed(command)) == steady(printed)
        assert len(requests) == 3
