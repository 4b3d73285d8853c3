"""What several integration tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from icestream.embedded.home import home
from icestream.embedded.kafka import Login, SecureBroker, running_secure_broker
from tests.integration.worker_world import World, running_world


@pytest.fixture
def demo_home(tmp_path: Path) -> Path:
    """A home of its own for a demo, with the jars that are downloaded already."""
    own = tmp_path / "home"
    own.mkdir()
    (home() / "jars").mkdir(exist_ok=True)
    (own / "jars").symlink_to(home() / "jars")
    return own


@pytest.fixture(scope="session")
def secure_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """A broker that wants TLS and SCRAM-SHA-512 at `.bootstrap`; `.plain.bootstrap` is its open door."""
    login = Login("alice", "alice-secret")
    with running_secure_broker(tmp_path_factory.mktemp("secure-kafka"), login) as running:
        yield running


@pytest.fixture(scope="session")
def secure_settings(secure_broker: SecureBroker) -> dict[str, str]:
    """The client settings of a worker's config for that broker, in the words of Java."""
    return {
        "bootstrap.servers": secure_broker.bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{secure_broker.login.user}" password="{secure_broker.login.password}";'
        ),
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(secure_broker.certificates.truststore_pkcs12),
        "ssl.truststore.password": secure_broker.certificates.password,
    }


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A standalone worker with Spark and a broker of its own: tests kill both, and start them again."""
    with running_world(tmp_path_factory.mktemp("worker")) as running:
        yield running
