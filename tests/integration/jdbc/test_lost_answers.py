"""COMMIT is sent and no answer comes: the checkpoint tells what became of it, and no row is there twice."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from icestream.api.errors import CommitUnknown, SinkUnavailable
from icestream.embedded.kafka import Broker
from tests.databases import Server
from tests.integration.jdbc.sink_job import SinkTest
from tests.message_proxy import Fault, Proxy, message_proxy


@pytest.mark.parametrize("name", ["postgresql", pytest.param("mariadb", marks=pytest.mark.long)])
@pytest.mark.parametrize("is_passed_on", [True, False])
def test_an_answer_to_commit_that_is_lost(
    broker: Broker, request: pytest.FixtureRequest, name: str, is_passed_on: bool
) -> None:
    server: Server = request.getfixturevalue(name)
    host, port = re.findall(r"//([^:/]+):(\d+)/", server.address)[0]
    with message_proxy((host, int(port))) as proxy:
        settings = dict(server.settings)
        settings["connection.url"] = settings["connection.url"].replace(f":{port}/", f":{proxy.port}/")
        job = SinkTest(settings, broker, reached=armed(proxy, is_passed_on))
        job.sql("CREATE TABLE T (id BIGINT)")
        job.produce({"id": 1})
        job.run({})
        proxy.hits = -1  # from now on
        job.produce({"id": 2}, {"id": 3})
        with pytest.raises((CommitUnknown, SinkUnavailable)):
            job.run()
        assert proxy.hits == 0
        job.produce({"id": 4})
        job.run()
        assert job.rows() == [(1,), (2,), (3,), (4,)]
        job.close()


def armed(proxy: Proxy, is_passed_on: bool) -> Callable[[str], None]:
    """Spoils the first COMMIT after rows were staged, once the test has said so."""

    def reached(point: str) -> None:
        if point == "staged" and proxy.hits == -1 and proxy.fault is None:
            proxy.fault = Fault(b"COMMIT", is_passed_on)

    return reached
