"""Placeholders in configs: what is put in, what stays, and what is never said."""

import logging
import os
import random
import re
from pathlib import Path

import pytest

from icestream.api.errors import ConfigError
from icestream.cluster.configs.providers import Providers, placeholders, providers_from

PACKAGE = "org.apache.kafka.common.config.provider."


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    (tmp_path / "db.properties").write_text("password = s3cret\nuser=ann\\u00e9\nlink=${env:HOME}\n", "utf-8")
    (tmp_path / "token").write_text("t0ken\n")
    (tmp_path / "inner").mkdir()
    return tmp_path


def providers(**parameters: str) -> Providers:
    return providers_from(
        {
            "config.providers": "file, dir,env",
            "config.providers.file.class": f"{PACKAGE}FileConfigProvider",
            "config.providers.dir.class": f"{PACKAGE}DirectoryConfigProvider",
            "config.providers.env.class": f"{PACKAGE}EnvVarConfigProvider",
            **parameters,
        }
    )


def test_each_provider_puts_its_values_in(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUCKET", "lake")
    resolved = providers().resolved(
        {
            "password": f"${{file:{secrets}/db.properties:password}}",
            "url": f"jdbc:x?u=${{file:{secrets}/db.properties:user}}&b=${{env:BUCKET}}-${{env:BUCKET}}",
            "token": f"${{dir:{secrets}:token}}",
            "plain": "as it is",
        }
    )
    assert resolved == {
        "password": "s3cret",
        "url": "jdbc:x?u=anné&b=lake-lake",
        "token": "t0ken\n",
        "plain": "as it is",
    }


def test_values_are_not_resolved_again(secrets: Path) -> None:
    resolved = providers().resolved({"a": f"${{file:{secrets}/db.properties:link}}"})
    assert resolved == {"a": "${env:HOME}"}


@pytest.mark.parametrize(
    "text",
    [
        "${vault:secret/db:password}",
        "${topic}-${timestamp}",
        "${env:NOT_SET_ANYWHERE}",
        "${env:}",
        "${file:password}",
        "${file::password}",
        "${env:HOME",
    ],
)
def test_what_nobody_has_stays(text: str) -> None:
    assert providers().resolved({"a": text}) == {"a": text}


def test_a_value_that_is_not_there_stays_and_is_told(secrets: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = f"${{file:{secrets}/db.properties:pasword}}"
    with caplog.at_level(logging.WARNING):
        assert providers().resolved({"db.password": text}) == {"db.password": text}
    assert caplog.messages == [f"'db.password' has {text}, which config provider 'file' does not have"]


def test_a_folder_is_no_value_and_no_way_out(secrets: Path) -> None:
    config = {"a": f"${{dir:{secrets}:inner}}", "b": f"${{dir:{secrets}/inner:../token}}"}
    assert providers().resolved(config) == config


def test_only_allowed_paths_are_looked_at(secrets: Path) -> None:
    limited = providers(
        **{
            "config.providers.file.param.allowed.paths": str(secrets / "inner"),
            "config.providers.dir.param.allowed.paths": f"{secrets / 'inner'},{secrets}",
        }
    )
    config = {
        "a": f"${{file:{secrets}/db.properties:user}}",
        "b": f"${{file:{secrets}/inner/../db.properties:user}}",
        "c": f"${{dir:{secrets}:token}}",
    }
    assert limited.resolved(config) == {**config, "c": "t0ken\n"}


def test_the_pattern_must_fit_the_whole_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_KEY", "k")
    monkeypatch.setenv("MY_APP_KEY", "k")
    limited = providers(**{"config.providers.env.param.allowlist.pattern": "APP_.*"})
    assert limited.resolved({"a": "${env:APP_KEY}", "b": "${env:MY_APP_KEY}"}) == {
        "a": "k",
        "b": "${env:MY_APP_KEY}",
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x${file:/not/there:a}", "config provider 'file' cannot read /not/there as a properties file"),
        ("${env:path:HOME}", "config provider 'env' takes no path, but the placeholder has 'path'"),
    ],
)
def test_a_provider_that_cannot_look_is_a_problem_of_the_key(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        providers().resolved({"ok": "1", "bad": text, "worse": text})
    assert [problem.key for problem in caught.value.problems] == ["bad", "worse"]
    assert f"'bad' cannot be resolved: {told}" in str(caught.value)


def test_a_damaged_file_does_not_leak(secrets: Path) -> None:
    (secrets / "damaged.properties").write_text("password=hunter2\\u12\n")
    with pytest.raises(ConfigError) as caught:
        providers().resolved({"a": f"${{file:{secrets}/damaged.properties:password}}"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("alias", ["EnvVar", "EnvVarConfigProvider", f"{PACKAGE}EnvVarConfigProvider"])
def test_a_class_may_be_named_in_short(alias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "y")
    worker = {"config.providers": "e", "config.providers.e.class": alias}
    assert providers_from(worker).resolved({"a": "${e:X}"}) == {"a": "y"}


def test_no_providers_leave_all_as_it_is() -> None:
    assert providers_from({}).resolved({"a": "${env:HOME}"}) == {"a": "${env:HOME}"}


@pytest.mark.parametrize(
    ("worker", "key", "told"),
    [
        ({"config.providers": "file"}, "config.providers.file.class", "is not set; set it to"),
        (
            {"config.providers": "v", "config.providers.v.class": "com.x.VaultConfigProvider"},
            "config.providers.v.class",
            "'config.providers.v.class=com.x.VaultConfigProvider' is a Java class that cannot run here",
        ),
        (
            {
                "config.providers": "f",
                "config.providers.f.class": "FileConfigProvider",
                "config.providers.f.param.allowed.paths": "relative",
            },
            "config.providers.f.param.allowed.paths",
            "has 'relative', which must be absolute and exist",
        ),
        (
            {
                "config.providers": "e",
                "config.providers.e.class": "EnvVarConfigProvider",
                "config.providers.e.param.allowlist.pattern": "(",
            },
            "config.providers.e.param.allowlist.pattern",
            "is not a regular expression",
        ),
    ],
)
def test_a_provider_that_cannot_be_made_is_a_problem_of_its_key(
    worker: dict[str, str], key: str, told: str
) -> None:
    with pytest.raises(ConfigError, match=r".") as caught:
        providers_from(worker)
    (problem,) = caught.value.problems
    assert problem.key == key
    assert told in problem.message


@pytest.mark.timeout(300)
@pytest.mark.parametrize("text", ["${" + ":" * 500_000, "${:" * 300_000, "${" * 400_000 + "}", "$" * 900_000])
def test_no_text_keeps_a_worker_busy(text: str) -> None:
    """Kafka's pattern needs hours for the first of them, and no other thread gets a turn meanwhile."""
    assert providers().resolved({"a": text}) == {"a": text}


def test_placeholders_are_found_as_by_kafkas_pattern() -> None:
    kafkas = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
    chance = random.Random(9)
    for _ in range(20_000):
        text = "".join(chance.choices("$${{}::a\n", k=chance.randint(0, 14)))
        expected = [(*one.span(), one[1], one[2] or "", one[3]) for one in kafkas.finditer(text)]
        found = [(one.start, one.end, one.provider, one.path, one.key) for one in placeholders(text)]
        assert found == expected, text


@pytest.mark.timeout(300)
def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_text("a=" + "x" * 2**20)
    for path in ("/dev/zero", f"{tmp_path}/pipe", f"{tmp_path}/large", str(tmp_path)):
        with pytest.raises(ConfigError, match="cannot be resolved: config provider 'file' cannot read"):
            providers().resolved({"a": f"${{file:{path}:a}}"})


def test_the_path_that_is_opened_is_the_one_that_is_allowed(tmp_path: Path) -> None:
    """Behind a link, `..` is another folder to the system than to who reads the path."""
    (tmp_path / "allowed").mkdir()
    (tmp_path / "elsewhere" / "inner").mkdir(parents=True)
    (tmp_path / "elsewhere" / "x").write_text("secret")
    (tmp_path / "allowed" / "link").symlink_to(tmp_path / "elsewhere" / "inner")
    given = {"config.providers.dir.param.allowed.paths": str(tmp_path / "allowed")}
    text = f"${{dir:{tmp_path}/allowed/link/..:x}}"
    assert providers(**given).resolved({"a": text}) == {"a": text}
