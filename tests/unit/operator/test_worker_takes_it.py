"""A worker takes the properties that the operator gives it: no key is unknown to it, none is wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from icestream.cluster.settings.worker_config import parse_distributed
from icestream.operator.manifests.cluster import Facts, desired
from icestream.operator.manifests.worker_config import settings
from icestream.operator.resources.cluster import parse_cluster
from tests.unit.operator.golden import CLUSTERS, resource


def authority() -> bytes:
    """A certificate, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test's authority")])
    made = x509.CertificateBuilder(
        name, name, key.public_key(), 1, datetime(2026, 1, 1, tzinfo=UTC), datetime(2126, 1, 1, tzinfo=UTC)
    )
    return made.sign(key, SHA256()).public_bytes(Encoding.PEM)


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_worker_understands_all_settings(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POD_IP", "10.0.0.1")
    monkeypatch.setenv("POD_NAME", "worker-1")
    (tmp_path / "connect-password" / "orders-connect").mkdir(parents=True)
    (tmp_path / "connect-password" / "orders-connect" / "password").write_text("hunter2")
    (tmp_path / "connect-certs" / "kafka-cluster-ca-cert").mkdir(parents=True)
    (tmp_path / "connect-certs" / "kafka-cluster-ca-cert" / "ca.crt").write_bytes(authority())
    spec = parse_cluster(resource(name))
    given = {
        key: value.replace("/opt/kafka", str(tmp_path)) for key, value in settings(spec, Facts()).items()
    }
    config = parse_distributed({"rest.advertised.host.name": "10.0.0.1", **given})
    assert config.group == spec.properties["group.id"]
    assert [one for one in config.warnings if "unknown" in one] == []


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_folder_that_providers_read_exists_in_the_pod(name: str) -> None:
    made = desired(parse_cluster(resource(name)), Facts())
    pod = next(one for one in made if one["kind"] == "Deployment")["spec"]["template"]["spec"]
    assert any(one["mountPath"].startswith("/opt/kafka/") for one in pod["containers"][0]["volumeMounts"])
