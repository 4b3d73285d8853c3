"""What the console hides of configs and texts, and what it leaves as it is."""

from __future__ import annotations

import pytest

from icestream.api.config import Setting, Type
from icestream.cluster.configs.masking import (
    MASK,
    hidden_config,
    is_secret,
    masked_config,
    masks_of,
    secrets_inside,
    shown_value,
)
from icestream.plugins import installed

SECRET = "hunter2-very"


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "connection.password",
        "iceberg.catalog.jdbc.password",
        "iceberg.catalog.s3.secret-access-key",
        "iceberg.catalog.token",
        "iceberg.catalog.credential",
        "value.converter.basic.auth.user.info",
        "consumer.override.sasl.jaas.config",
        "producer.override.ssl.key.password",
        "ssl.keystore.key",
        "aws.access.key.id",
        "azure.account.key",
        "api-key",
        "header.Authorization",
        "PASSWD",
        "ssl.keystore.certificate.chain",
    ],
)
def test_keys_whose_names_say_secret_are_hidden(key: str) -> None:
    assert masked_config({key: SECRET}) == {key: MASK}
    assert is_secret(key)


def test_what_a_setting_calls_a_password_is_hidden_whatever_its_name() -> None:
    settings = [Setting("innocent", Type.PASSWORD, None, ""), Setting("plain", Type.STRING, None, "")]
    assert masked_config({"innocent": SECRET, "plain": "x"}, settings) == {"innocent": MASK, "plain": "x"}
    assert is_secret("innocent", settings[0])


def test_every_password_of_every_connector_is_hidden() -> None:
    for plugin in installed().plugins:
        settings = plugin.settings.settings
        passwords = [one.name for one in settings if one.type is Type.PASSWORD]
        config = {one.name: SECRET for one in settings}
        assert {key for key, value in masked_config(config, settings).items() if value == MASK} >= {
            *passwords
        }


@pytest.mark.parametrize(
    "value",
    [
        f"jdbc:postgresql://alice:{SECRET}@db:5432/x",
        f"https://alice:{SECRET}@host/path?x=1",
        f"https://alice:{SECRET}/with/slash@host/path",
        f"https://{SECRET}@github.example/x",
        f"http://:{SECRET}@host",
        f"http://u:{'x' * 5_000}{SECRET}@host",
        f"http://u:a${{b{SECRET}@host",
        f"http://u:${{a://b:{SECRET}@host}}",
        f"http://a:${{env:X}}@h,http://b:{SECRET}@h",
        f"jdbc:mysql://db/x?user=u&password={SECRET}&ssl=true",
        f"jdbc:sqlserver://db;user=u;Password={SECRET};encrypt=true",
        f"https://acc.blob.example/c?sv=1&sig={SECRET}&se=2",
        f"AccountName=a;AccountKey={SECRET};EndpointSuffix=x",
        f'{{"user": "a", "client_secret": "{SECRET}"}}',
        f"Authorization: Bearer {SECRET}",
        f"Basic {SECRET}",
        f"user=a password='{SECRET}' dbname=x",
        f'org.x.LoginModule required username="a" password="{SECRET}";',
        f"-----BEGIN PRIVATE KEY-----\n{SECRET.replace('-', '')}\n-----END PRIVATE KEY-----",
        f"first=http://a:b@x,second=http://c:{SECRET}@y",
        f"token = {SECRET}",
        f"'pwd={SECRET}' is no number",
        f"tasks.max=pwd={SECRET}",
        f"X-Api-Key={SECRET}",
        f"https://h/?X-Amz-Signature={SECRET}",
    ],
)
def test_secrets_inside_of_values_are_hidden(value: str) -> None:
    shown = masked_config({"connection.url": value})["connection.url"]
    assert SECRET not in shown and SECRET.replace("-", "") not in shown
    assert MASK in shown


@pytest.mark.parametrize(
    "value",
    [
        "",
        "orders,clicks",
        "http://catalog:8181/path@v2",
        "http://catalog:8181",
        "https://[::1]:8181/x",
        "s3://bucket/warehouse",
        "abfss://container@account.dfs.example/path",
        "jdbc:postgresql://db:5432/x?user=alice&ssl=true",
        "alice@example.com",
        "org.apache.kafka.connect.json.JsonConverter",
        "a=b;c=d",
        "${file:/etc/secrets.properties:password}",
        "jdbc:postgresql://u:${file:/etc/s.properties:pw}@db/x",
        "jdbc:postgresql://db/x?password=${env:PW}",
        "^.*_(password|token)$",
    ],
)
def test_what_is_no_secret_stays_as_it_is(value: str) -> None:
    assert masked_config({"some.key": value}) == {"some.key": value}


@pytest.mark.parametrize("value", ["${file:/etc/s.properties:pw}", "${env:A}${env:B}", ""])
def test_placeholders_are_no_secrets(value: str) -> None:
    assert masked_config({"password": value}) == {"password": value}


@pytest.mark.parametrize("value", ["x${env:A}", "${env:A}x", "${not a placeholder}", "${", "x${env:A"])
def test_what_is_not_only_placeholders_is_hidden(value: str) -> None:
    assert masked_config({"password": value}) == {"password": MASK}


def test_a_secret_is_hidden_wherever_else_it_stands() -> None:
    config = {"password": SECRET, "odd.place": f"x:{SECRET}:y", "short.secret": "ab", "other": "ab cab"}
    shown = masked_config(config)
    assert shown == {"password": MASK, "odd.place": f"x:{MASK}:y", "short.secret": MASK, "other": "ab cab"}
    trace = f"OperationalError: login of alice with {SECRET} was refused"
    assert SECRET not in masks_of(config).text(trace)


def test_a_secret_that_is_a_mere_word_hides_no_other_value() -> None:
    config = {"credentials.source": "USER_INFO", "iceberg.tables": "USER_INFO.orders", "pin.secret": "8083"}
    shown = masked_config({**config, "listener": "http://catalog:8083"})
    assert (shown["credentials.source"], shown["pin.secret"]) == (MASK, MASK)
    assert (shown["iceberg.tables"], shown["listener"]) == ("USER_INFO.orders", "http://catalog:8083")
    assert masks_of(config).text("no USER_INFO here") == f"no {MASK} here"


def test_secrets_inside_of_a_value_can_be_asked_for() -> None:
    value = f"jdbc:x://alice:{SECRET}@db/x?pwd='other'&token=${{env:T}}&port=5432"
    assert secrets_inside(value) == {SECRET, "other"}
    assert secrets_inside("http://127.0.0.1:8081") == set()


def test_the_longest_secret_first() -> None:
    config = {"password": "abcd", "other.password": "abcdefgh"}
    assert masks_of(config).text("x abcdefgh y abcd") == f"x {MASK} y {MASK}"


def test_masks_of_masks_are_the_same() -> None:
    once = masked_config({"password": SECRET, "url": f"http://u:{SECRET}@h/?token={SECRET}"})
    assert masked_config(once) == once
    assert hidden_config({"a": SECRET, "b": "x"}, ["a"]) == {"a": MASK, "b": "x"}


@pytest.mark.parametrize(
    "unit",
    ["://a:", "password=", "a", '"password":"', "${", "://", "=token", "bearer ", "${env:A}", "://a:${b:c}"],
)
def test_hostile_values_take_no_minutes(unit: str) -> None:
    # Quadratic ones take many minutes, and the limit of each test ends them.
    assert shown_value(unit * (50_000 // len(unit))) is not None


@pytest.mark.parametrize("unit", ["://a:", "://", "://a:$", "://a:${", '"token'])
def test_a_megabyte_of_beginnings_is_looked_at_once(unit: str) -> None:
    # While it is looked at, no other thread of the worker runs: that was seconds.
    many = unit * (2**20 // len(unit))
    assert shown_value(many) == many
    assert shown_value(f"{many} http://u:{SECRET}@h").endswith(f" http://u:{MASK}@h")


@pytest.mark.parametrize("unit", ["token", "password", "access_key", "secret.", "pwd-"])
def test_a_long_word_is_looked_at_once(unit: str) -> None:
    # A config may have a megabyte; quadratic, that held up the whole worker for half an hour.
    text = unit * (2**20 // len(unit))
    assert shown_value(text) == text
    assert shown_value(f"{text}={SECRET}") == f"{text}={MASK}"
