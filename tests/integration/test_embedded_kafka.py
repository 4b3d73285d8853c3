"""The embedded broker, really started, stopped and killed; the load generator against it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from icestream.api.errors import NotFoundError, PreconditionError, SourceUnavailable
from icestream.embedded import kafka, loadgen, ports
from icestream.embedded.minio_logs import generate
from icestream.embedded.topics import ensure_topic, partition_count

pytestmark = pytest.mark.network


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "kafka"
    kafka.kill(tmp_path / "kafka")


def values(bootstrap: str, topic: str, partition: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0)])
    found = []
    deadline = time.monotonic() + 120
    try:
        while True:
            message = consumer.poll(1)
            error = None if message is None else message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                break
            # A broker that has just come back may not know its topics yet.
            assert time.monotonic() < deadline, error
            if message is not None and error is None:
                found.append(message.value() or b"")
    finally:
        consumer.close()
    return found


def test_data_and_port_survive_a_stop_and_a_kill(data: Path) -> None:
    first = kafka.start(data, ports.free_port(), die_with_parent=True)
    assert kafka.start(data) == first == kafka.status(data)
    ensure_topic(first.bootstrap, "kept", 2)
    loadgen.produce(first.bootstrap, "kept", "audit", 10)
    assert kafka.kill(data)
    assert kafka.status(data) is None

    second = kafka.start(data, die_with_parent=True)
    assert (second.port, second.data) == (first.port, first.data)
    assert second.pid != first.pid
    assert [len(values(second.bootstrap, "kept", partition)) for partition in (0, 1)] == [5, 5]

    assert kafka.stop(data)
    assert not kafka.stop(data)
    assert not ports.is_listening(second.port)


def test_a_port_that_was_asked_for_and_is_taken_is_one_sentence(data: Path) -> None:
    with socket.create_server((ports.HOST, 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(
            PreconditionError, match=f"port {port} is taken; stop what listens there or choose"
        ):
            kafka.start(data, port)


def test_a_running_broker_cannot_change_its_port(broker: kafka.Broker) -> None:
    with pytest.raises(PreconditionError, match=rf"runs on port {broker.port}, not 1234; stop it first"):
        kafka.start(broker.data, 1234)


def test_the_command_leaves_a_broker_behind_that_ctrl_c_does_not_reach(data: Path) -> None:
    command = [sys.executable, "-m", "icestream.cli.main", "kafka"]
    started = subprocess.run([*command, "start", "--data", str(data)], capture_output=True, text=True)
    assert started.returncode == 0, started.stderr
    broker = kafka.status(data)
    assert broker and broker.bootstrap in started.stdout
    assert os.getpgid(broker.pid) == broker.pid != os.getpgid(0)

    assert subprocess.run([*command, "status", "--data", str(data)]).returncode == 0
    stopped = subprocess.run([*command, "stop", "--data", str(data)], capture_output=True, text=True)
    assert stopped.stdout == "Kafka is stopped\n"
    assert subprocess.run([*command, "status", "--data", str(data)], capture_output=True).returncode == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux's")
def test_a_killed_test_run_leaves_no_broker_behind(data: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from icestream.embedded.kafka import running_broker\n"
        "with running_broker(Path(sys.argv[1])) as broker: print(broker.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(data)], stdout=subprocess.PIPE) as owner:
        assert owner.stdout and owner.stdout.readline()
        running = kafka.status(data)
        owner.send_signal(signal.SIGKILL)
    assert running
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if kafka.status(data) is None:
            return
        time.sleep(0.1)
    pytest.fail(f"broker {running.pid} outlived its owner")


def test_the_load_is_in_the_topic_in_order_and_round_robin(broker: kafka.Broker) -> None:
    ensure_topic(broker.bootstrap, "apilogs")
    seen: list[int] = []
    report = loadgen.produce(broker.bootstrap, "apilogs", "api", 5000, bad=5, seed=3, on_progress=seen.append)
    assert (report.sent, report.bad) == (5000, 5)
    assert seen[-1] == 5000
    expected = list(generate("api", 5000, seed=3, bad=5))
    for partition in range(3):
        assert values(broker.bootstrap, "apilogs", partition) == expected[partition::3]


def test_a_second_load_continues_the_first(broker: kafka.Broker) -> None:
    ensure_topic(broker.bootstrap, "continued")
    for start in (0, 100, 200):
        loadgen.produce(broker.bootstrap, "continued", "error", 100, seed=1, start=start)
    found = Counter(v for partition in range(3) for v in values(broker.bootstrap, "continued", partition))
    assert found == Counter(generate("error", 300, seed=1))


def test_topics_are_made_once_and_never_by_accident(broker: kafka.Broker) -> None:
    assert ensure_topic(broker.bootstrap, "made", 5)
    assert not ensure_topic(broker.bootstrap, "made", 7)
    assert partition_count(broker.bootstrap, "made") == 5
    with pytest.raises(NotFoundError, match="there is no topic 'absent'"):
        loadgen.produce(broker.bootstrap, "absent", "api", 1)


def test_no_broker_is_one_sentence() -> None:
    with pytest.raises(SourceUnavailable, match=r"no Kafka answers at 127\.0\.0\.1:1; start one with"):
        ensure_topic("127.0.0.1:1", "any")
