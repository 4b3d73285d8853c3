"""The stack's variables: defaults of the seed, the file, the environment, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.api.errors import PreconditionError
from icestream.stack.settings import Settings, settings_from, variables

DEFAULTS = {
    "MINIO_SOURCE_IMAGE": "praveenminio/eos:log",
    "MINIO_ROOT_USER": "minioadmin",
    "MINIO_ROOT_PASSWORD": "minioadmin",
    "KAFKA_IMAGE": "confluentinc/cp-kafka:7.5.0",
    "TRINO_IMAGE": "trinodb/trino:477",
    "WAREHOUSE_NAME": "kafkawarehouse",
    "NAMESPACE_NAME": "streaming",
    "API_LOGS_TOPIC": "apilogs",
    "ERROR_LOGS_TOPIC": "errorlogs",
    "AUDIT_LOGS_TOPIC": "auditlogs",
    "SOURCE_API_PORT": "9000",
    "SOURCE_CONSOLE_PORT": "9001",
    "DEST_API_PORT": "9010",
    "DEST_CONSOLE_PORT": "9011",
    "KAFKA_EXTERNAL_PORT": "9092",
    "KAFKA_CONNECT_PORT": "8083",
    "TRINO_PORT": "9999",
}


def test_every_variable_has_the_documented_default() -> None:
    assert variables().items() >= DEFAULTS.items()
    assert {*variables()} - {*DEFAULTS} == {"MINIO_LICENSE", "MINIO_DEST_IMAGE", "KAFKA_CONNECT_IMAGE"}


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# mine\nTRINO_PORT=7777\nexport WAREHOUSE_NAME='other'  \n\nDEST_API_PORT=1 # one\n")
    found = settings_from({"TRINO_PORT": "8888", "MINIO_ROOT_USER": ""}, file)
    assert found == Settings(trino_port=8888, warehouse="other", destination_port=1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"TRINO_PORT": "x1"}, "TRINO_PORT is 'x1'"),
        ({"TRINO_PORT": "70000"}, "use 1 to 65535"),
        ({"WAREHOUSE_NAME": "a/../b"}, "WAREHOUSE_NAME is 'a/../b'"),
        ({"API_LOGS_TOPIC": "a,b"}, "API_LOGS_TOPIC"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_name(given: dict[str, str], said: str) -> None:
    with pytest.raises(PreconditionError, match=said):
        settings_from(given)


def test_a_line_that_is_no_variable_is_refused_with_its_number(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("A=1\nthis is not one\n")
    with pytest.raises(PreconditionError, match="line 2 of"):
        settings_from({}, file)


def test_the_password_is_not_shown() -> None:
    assert "s3cret" not in repr(Settings(password="s3cret"))
