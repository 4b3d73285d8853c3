"""Logins in Java's words, understood; what is wrong with them, said without their secrets."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from icestream.api.errors import ConfigError
from icestream.kafka import jaas
from icestream.kafka.clients import client_settings, quiet
from icestream.kafka.connection import connection_facts

BASE = {"bootstrap.servers": "a:1,b:2", "security.protocol": "SASL_PLAINTEXT"}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
ENDPOINT = "http://127.0.0.1:1/token"


def sasl(mechanism: str, jaas_config: str = "", **more: str) -> dict[str, str]:
    login = {"sasl.jaas.config": jaas_config} if jaas_config else {}
    return {**BASE, "sasl.mechanism": mechanism, **login, **more}


def test_the_jaas_language() -> None:
    module = jaas.parse(
        'a.b.PlainLoginModule REQUIRED // the flag is of any case\n user = "a \\"b\\" c"'
        " pass='x;=y' /* and */ plain=word;"
    )
    assert module.simple_name == "PlainLoginModule"
    assert module.options == {"user": 'a "b" c', "pass": "x;=y", "plain": "word"}
    assert "x;=y" not in repr(module)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Module",
        "Module needed a=b;",
        "M required a=b",
        "M required a=;",
        'M required a="b;',
        "M required; N required;",
    ],
)
def test_a_text_that_is_not_jaas_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        jaas.parse(text)


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)],
)
def test_a_user_and_password(mechanism: str, module: str) -> None:
    settings = sasl(mechanism, f'{module} username="alice" password="p\\"w";')
    facts = connection_facts(settings)
    assert facts.bootstrap_servers == ("a:1", "b:2")
    assert (facts.mechanism, facts.username, facts.password) == (mechanism, "alice", 'p"w')
    assert 'p"w' not in repr(facts)
    assert client_settings(settings) == {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": 'p"w',
    }


def test_librdkafkas_own_words_stay() -> None:
    settings = {**BASE, "sasl.mechanisms": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
    facts = connection_facts(settings)
    assert (facts.mechanism, facts.username, facts.password) == ("PLAIN", "u", "p")
    assert client_settings(settings) == {**settings, "sasl.mechanism": "PLAIN"}


@pytest.mark.parametrize(
    "settings",
    [
        sasl(
            "OAUTHBEARER",
            f'{OAUTH} clientId="me" clientSecret="s3" scope="read" extension_logicalCluster="c1";',
            **{
                "sasl.login.callback.handler.class": HANDLER,
                "sasl.oauthbearer.token.endpoint.url": ENDPOINT,
            },
        ),
        sasl(
            "OAUTHBEARER",
            f'{OAUTH} extension_logicalCluster="c1";',
            **{
                "sasl.oauthbearer.token.endpoint.url": ENDPOINT,
                "sasl.oauthbearer.client.credentials.client.id": "me",
                "sasl.oauthbearer.client.credentials.client.secret": "s3",
                "sasl.oauthbearer.scope": "read",
            },
        ),
        sasl(
            "OAUTHBEARER",
            f'{OAUTH} oauth.client.id="me" oauth.client.secret="s3" oauth.scope="read" '
            f'oauth.token.endpoint.uri="{ENDPOINT}" extension_logicalCluster="c1";',
            **{
                "sasl.login.callback.handler.class": (
                    "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
                )
            },
        ),
    ],
)
def test_client_credentials(settings: dict[str, str]) -> None:
    translated = client_settings(settings)
    oauth = {key: value for key, value in translated.items() if key.startswith("sasl.oauthbearer.")}
    assert oauth == {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": ENDPOINT,
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "s3",
        "sasl.oauthbearer.scope": "read",
        "sasl.oauthbearer.extensions": "logicalCluster=c1",
    }
    AdminClient(quiet({**translated, "bootstrap.servers": "127.0.0.1:1"}))


def test_a_token_by_assertion() -> None:
    found = client_settings(
        sasl(
            "OAUTHBEARER",
            f"{OAUTH};",
            **{
                "sasl.oauthbearer.token.endpoint.url": ENDPOINT,
                "sasl.oauthbearer.jwt.retriever.class": (
                    "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"
                ),
                "sasl.oauthbearer.assertion.claim.sub": "me",
                "sasl.oauthbearer.assertion.template.file": "t.json",
            },
        )
    )
    assert found["sasl.oauthbearer.grant.type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert found["sasl.oauthbearer.assertion.claim.sub"] == "me"
    assert found["sasl.oauthbearer.assertion.jwt.template.file"] == "t.json"


def test_an_unsecured_token_for_tests() -> None:
    found = client_settings(sasl("OAUTHBEARER", f'{OAUTH} unsecuredLoginStringClaim_sub="thanos";'))
    assert found["enable.sasl.oauthbearer.unsecure.jwt"] == "true"
    assert found["sasl.oauthbearer.config"] == "principal=thanos"
    AdminClient(quiet({**found, "bootstrap.servers": "127.0.0.1:1"}))


SECRET = "hush-hush"


@pytest.mark.parametrize(
    ("settings", "key", "told"),
    [
        (
            sasl("SCRAM-SHA-512"),
            "sasl.jaas.config",
            "is not set, and SCRAM-SHA-512 needs a user; set sasl.jaas.config=org.apache.kafka.common."
            "security.scram.ScramLoginModule required username",
        ),
        (sasl("PLAIN", f"{PLAIN} username={SECRET};"), "sasl.jaas.config", "has no password; add password="),
        (sasl("PLAIN", f'{PLAIN} password="{SECRET}'), "sasl.jaas.config", "a quotation mark is not closed"),
        (
            sasl("PLAIN", f'{SCRAM} username="a" password="{SECRET}";'),
            "sasl.jaas.config",
            "names ScramLoginModule, but sasl.mechanism is PLAIN; set sasl.mechanism=SCRAM-SHA-256 or SCRAM",
        ),
        (
            sasl("SCRAM-SHA-512", f'{SCRAM} username="a" password="{SECRET}" tokenauth="true";'),
            "sasl.jaas.config",
            "asks for a delegation token",
        ),
        (
            sasl("OAUTHBEARER", "software.amazon.msk.auth.iam.IAMLoginModule required;"),
            "sasl.jaas.config",
            "names IAMLoginModule, a Java class that cannot run here; use PlainLoginModule, ScramLoginModule",
        ),
        (
            sasl("AWS_MSK_IAM"),
            "sasl.mechanism",
            "'sasl.mechanism=AWS_MSK_IAM' cannot be used here; use one of",
        ),
        (
            sasl("GSSAPI", **{"sasl.kerberos.service.name": "kafka"}),
            "sasl.mechanism",
            "is GSSAPI, which is Java's default, but this librdkafka has no Kerberos; use PLAIN",
        ),
        (
            sasl("OAUTHBEARER", f'{OAUTH} clientId="x" clientSecret="{SECRET}";'),
            "sasl.oauthbearer.token.endpoint.url",
            "is not a token endpoint; set it to an http(s) address",
        ),
        (
            sasl(
                "OAUTHBEARER", f'{OAUTH} clientId="x";', **{"sasl.oauthbearer.token.endpoint.url": ENDPOINT}
            ),
            "sasl.oauthbearer.client.credentials.client.secret",
            "is not set; set it, or clientSecret in sasl.jaas.config, to get a token",
        ),
        (
            sasl("OAUTHBEARER", f"{OAUTH};", **{"sasl.login.callback.handler.class": "com.x.Handler"}),
            "sasl.login.callback.handler.class",
            "is a Java class that cannot run here",
        ),
        (
            {**BASE, "security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "ldap"},
            "ssl.endpoint.identification.algorithm",
            "is not known; use https, or leave it empty",
        ),
        (
            {**BASE, "security.protocol": "SSL", "ssl.ca.location": "/not/there.pem"},
            "ssl.ca.location",
            "'ssl.ca.location=/not/there.pem' cannot be read (No such file or directory); check the path",
        ),
    ],
)
def test_a_login_that_cannot_be_used_is_a_problem_of_its_key(
    settings: dict[str, str], key: str, told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        client_settings(settings)
    (problem,) = caught.value.problems
    assert problem.key == key
    assert told in problem.message
    assert SECRET not in problem.message


def test_all_problems_come_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        connection_facts(
            {"bootstrap.servers": "a", "security.protocol": "SASL_SSL", "ssl.truststore.location": "/none"}
        )
    assert [problem.key for problem in caught.value.problems] == [
        "bootstrap.servers",
        "sasl.kerberos.service.name",
        "ssl.truststore.location",
    ]


def test_the_host_name_is_compared_unless_the_algorithm_is_empty(tmp_path: Path) -> None:
    tls = {**BASE, "security.protocol": "SSL"}
    assert connection_facts(tls).check_hostname
    assert client_settings(tls)["ssl.endpoint.identification.algorithm"] == "https"
    off = {**tls, "ssl.endpoint.identification.algorithm": ""}
    assert not connection_facts(off).check_hostname
    assert client_settings(off)["ssl.endpoint.identification.algorithm"] == "none"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("SASL_SSL://h.x:9,k:1", ("h.x:9", "k:1")),
        ("[::1]:9092", ("[::1]:9092",)),
        (" a:1 , b:2,", ("a:1", "b:2")),
    ],
)
def test_addresses(given: str, expected: tuple[str, ...]) -> None:
    assert connection_facts({"bootstrap.servers": given}).bootstrap_servers == expected
