"""The environment variables of the job manager of Java workers."""

from __future__ import annotations

import pytest

from icestream.api.errors import ConfigError
from icestream.connectors.iceberg.coordinator.job_manager import IcebergJobConfig

REQUIRED = {
    "KAFKA_BOOTSTRAP_SERVERS": "kafka:9092",
    "CONNECT_GROUP_ID": "connect-orders",
    "CONTROL_TOPIC": "control",
    "CATALOG_NAME": "lake",
    "CATALOG_CATALOG_IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
    "CATALOG_URI": "jdbc:postgresql://postgres:5432/iceberg",
}


def made(**more: str) -> IcebergJobConfig:
    return IcebergJobConfig.from_environment({**REQUIRED, **more})


def refused(**more: str) -> str:
    with pytest.raises(ConfigError) as error:
        made(**more)
    return str(error.value)


def test_what_nobody_sets_has_the_defaults_of_the_seed() -> None:
    config = made(PATH="/bin")
    assert (config.commit_interval, config.commit_timeout, config.commit_threads) == (300, 1800, 4)
    assert (config.transactions, config.transaction_timeout) == (True, 900)
    assert config.job_id == "connect-orders"
    assert config.transactional_id == made().transactional_id == "connect-orders-job-manager"


def test_every_missing_variable_is_named_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        IcebergJobConfig.from_environment({"CONTROL_TOPIC": " "})
    named = [problem.key for problem in error.value.problems]
    assert named == [
        *("KAFKA_BOOTSTRAP_SERVERS", "CONNECT_GROUP_ID", "CONTROL_TOPIC", "CATALOG_NAME", "CATALOG_URI"),
    ]


def test_what_is_set_is_taken() -> None:
    config = made(
        JOB_ID="orders",
        COMMIT_INTERVAL_MINUTES="0.5",
        COMMIT_TIMEOUT_MINUTES="2",
        COMMIT_THREADS="8",
        ENABLE_TRANSACTIONS="false",
        TRANSACTIONAL_ID="mine",
        TRANSACTION_TIMEOUT_MINUTES="1",
    )
    assert (config.job_id, config.commit_interval, config.commit_timeout) == ("orders", 30, 120)
    assert (config.commit_threads, config.transactions) == (8, False)
    assert (config.transactional_id, config.transaction_timeout) == ("mine", 60)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COMMIT_INTERVAL_MINUTES", "soon"),
        ("COMMIT_INTERVAL_MINUTES", "0"),
        ("COMMIT_TIMEOUT_MINUTES", "-1"),
        ("TRANSACTION_TIMEOUT_MINUTES", "nan"),
        ("COMMIT_THREADS", "0"),
        ("ENABLE_TRANSACTIONS", "yes"),
        ("TRANSACTIONAL_ID", "a\x00b"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_variable(name: str, value: str) -> None:
    assert f"environment variable {name}" in refused(**{name: value})


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("CATALOG_CATALOG_IMPL", "catalog-impl"),
        ("CATALOG_JDBC_USER", "jdbc.user"),
        ("CATALOG_JDBC_PASSWORD", "jdbc.password"),
        ("CATALOG_WAREHOUSE", "warehouse"),
        ("CATALOG_S3_ACCESS_KEY_ID", "s3.access-key-id"),
        ("CATALOG_S3_PATH_STYLE_ACCESS", "s3.path-style-access"),
        ("CATALOG_REST_SIGV4_ENABLED", "rest.sigv4-enabled"),
        ("CATALOG_OAUTH2_SERVER_URI", "oauth2-server-uri"),
        ("CATALOG_header.X-Tenant", "header.X-Tenant"),
        ("CATALOG_JDBC_CONNECTTIMEOUT", "jdbc.connecttimeout"),
    ],
)
def test_a_catalog_variable_is_the_property_that_it_stands_for(variable: str, key: str) -> None:
    value = REQUIRED.get(variable, "v")
    config = made(**{variable: value})
    assert config.catalog[key] == value
    assert config.catalog_config[f"iceberg.catalog.{key}"] == value
    assert config.catalog_config["iceberg.catalog"] == "lake"


def test_what_kubernetes_says_of_a_service_called_catalog_is_no_property() -> None:
    links = {
        "CATALOG_SERVICE_HOST": "10.0.0.1",
        "CATALOG_SERVICE_PORT_HTTP": "8181",
        "CATALOG_PORT": "tcp://10.0.0.1:8181",
        "CATALOG_PORT_8181_TCP_ADDR": "10.0.0.1",
    }
    assert made(**links) == made()


def test_a_property_that_names_code_is_refused() -> None:
    assert "py-io-impl" in refused(**{"CATALOG_py-io-impl": "os.system"})


def test_a_kind_of_catalog_that_is_not_known_is_refused_with_the_others_by_its_variable() -> None:
    told = refused(CATALOG_CATALOG_IMPL="", CATALOG_TYPE="rst", COMMIT_THREADS="0")
    assert "Invalid value 'rst' for environment variable CATALOG_TYPE: this version opens rest" in told
    assert "COMMIT_THREADS" in told


def test_a_variable_of_the_catalog_without_effect_is_a_warning() -> None:
    assert made().warnings == []
    assert "'iceberg.catalog.foo.bar' has no effect" in "".join(made(CATALOG_FOO_BAR="1").warnings)


def test_a_misspelt_variable_is_a_warning_that_names_it_and_the_likely_one() -> None:
    told = made(COMMIT_INTERVALL_MINUTES="1", KAFKA_BOOTSTRAP_SERVER="kafka:1", COMMIT_SERVICE_HOST="::1")
    assert told.warnings == [
        "environment variable COMMIT_INTERVALL_MINUTES has no effect: no variable is called so; did you mean "
        "COMMIT_INTERVAL_MINUTES?",
        "environment variable KAFKA_BOOTSTRAP_SERVER has no effect: no variable is called so; did you mean "
        "KAFKA_BOOTSTRAP_SERVERS?",
    ]


def test_kafka_security_is_taken_and_other_variables_of_kafka_are_not() -> None:
    config = made(
        KAFKA_SECURITY_PROTOCOL="SASL_SSL",
        KAFKA_SASL_MECHANISM="PLAIN",
        KAFKA_SASL_JAAS_CONFIG="… password='hunter2';",
        KAFKA_HEAP_OPTS="-Xmx1g",
        KAFKA_PORT="tcp://10.0.0.2:9092",
    )
    assert config.kafka == {
        "bootstrap.servers": "kafka:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "… password='hunter2';",
    }


def test_no_secret_is_in_the_repr_and_all_are_concealed() -> None:
    config = made(CATALOG_JDBC_PASSWORD="hunter2", KAFKA_SASL_JAAS_CONFIG="jaas-hunter3")
    assert "hunter" not in repr(config)
    assert set(config.secrets) == {"hunter2", "jaas-hunter3"}
