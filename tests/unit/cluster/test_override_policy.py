"""Which client settings a connector may override."""

import pytest

from icestream.api.errors import ConfigError
from icestream.cluster.configs.override_policy import policy_problems

KEY = "connector.client.config.override.policy"
CONFIG = {
    "producer.override.linger.ms": "5",
    "consumer.override.sasl.jaas.config": "x",
    "admin.override.retries": "1",
    "consumer.overriden": "not an override",
    "topics": "t",
}


@pytest.mark.parametrize(
    ("policy", "forbidden"),
    [
        ("", []),
        ("All", []),
        ("AllConnectorClientConfigOverridePolicy", []),
        (
            "None",
            [
                "producer.override.linger.ms",
                "consumer.override.sasl.jaas.config",
                "admin.override.retries",
            ],
        ),
        ("Principal", ["producer.override.linger.ms", "admin.override.retries"]),
        (
            "org.apache.kafka.connect.connector.policy.PrincipalConnectorClientConfigOverridePolicy",
            ["producer.override.linger.ms", "admin.override.retries"],
        ),
        ("Allowlist", ["consumer.override.sasl.jaas.config"]),
    ],
)
def test_each_policy_forbids_what_it_does_in_kafka(policy: str, forbidden: list[str]) -> None:
    worker = {KEY: policy, "connector.client.config.override.allowlist": "linger.ms, retries"}
    assert [problem.key for problem in policy_problems(worker, CONFIG)] == forbidden


def test_an_empty_list_allows_nothing() -> None:
    assert len(policy_problems({KEY: "Allowlist"}, CONFIG)) == 3


def test_the_sentence_is_kafkas() -> None:
    (problem,) = policy_problems({KEY: "None"}, {"producer.override.linger.ms": "5"})
    assert problem.message == (
        "The 'None' policy does not allow 'linger.ms' to be overridden in the connector configuration."
    )


def test_a_policy_of_java_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'.*policy=com\.x\.Mine' is a Java class that cannot run here"):
        policy_problems({KEY: "com.x.Mine"}, CONFIG)


def test_the_sinks_own_client_is_a_client_too() -> None:
    worker = {KEY: "None", "bootstrap.servers": "kafka:9092"}
    again = {"iceberg.kafka.bootstrap.servers": "kafka:9092"}
    assert policy_problems(worker, again, ["iceberg.kafka."]) == []
    (problem,) = policy_problems(
        worker, {**again, "iceberg.kafka.security.protocol": "SSL"}, ["iceberg.kafka."]
    )
    assert problem.key == "iceberg.kafka.security.protocol"
