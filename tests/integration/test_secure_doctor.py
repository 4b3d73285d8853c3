"""`icestream doctor` at a broker that wants TLS and a login."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from icestream.cli import main
from icestream.embedded import ports
from icestream.embedded.kafka import SecureBroker

SECRET = "very-secret-value"


def doctor(file: Path, settings: dict[str, str], *arguments: str) -> tuple[int, str]:
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    result = CliRunner().invoke(main.icestream, ["doctor", "--worker", str(file), *arguments])
    return result.exit_code, result.stdout + result.stderr


def test_a_password_that_kafka_refuses(
    secure_broker: SecureBroker, secure_settings: dict[str, str], tmp_path: Path
) -> None:
    good = {
        **secure_settings,
        "listeners": f"http://127.0.0.1:{ports.free_port()}",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "offset.storage.file.filename": str(tmp_path / "offsets"),
    }
    code, told = doctor(tmp_path / "good.properties", good, "--json")
    assert code == 0, told
    facts = {finding["what"]: finding for finding in json.loads(told)["findings"]}
    assert facts["Kafka login"]["fact"] == "accepted (SASL_SSL, SCRAM-SHA-512)"
    assert facts["Kafka version"]["sign"] == "fine"

    password = secure_broker.login.password
    bad = {**good, "sasl.jaas.config": good["sasl.jaas.config"].replace(password, SECRET)}
    code, told = doctor(tmp_path / "bad.properties", bad, "--timeout", "6")
    assert code == 1
    assert "✗ Kafka login:" in told and "refuses the login" in told
    for secret in (SECRET, password, secure_broker.certificates.password):
        assert secret not in told
