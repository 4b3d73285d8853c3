"""Our config providers beside Kafka's own, on the same placeholders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from py4j.java_gateway import JavaGateway

from icestream.api.errors import ConfigError
from icestream.cluster.configs.providers import providers_from
from icestream.embedded import kafka
from tests.integration.jvm import java_gateway

pytestmark = pytest.mark.network

PACKAGE = "org.apache.kafka.common.config.provider"
PROVIDERS = {
    "file": "FileConfigProvider",
    "dir": "DirectoryConfigProvider",
    "env": "EnvVarConfigProvider",
    "here": "FileConfigProvider",
    "some": "EnvVarConfigProvider",
}


@pytest.fixture(scope="module")
def gateway() -> Iterator[JavaGateway]:
    with java_gateway(f"{kafka.jars()}/*") as opened:
        yield opened


def javas(
    gateway: JavaGateway, parameters: Mapping[str, Mapping[str, str]], texts: list[str]
) -> dict[str, str | None]:
    """What Kafka makes of each text; None if it refuses."""
    providers = gateway.jvm.java.util.HashMap()
    for name, kind in PROVIDERS.items():
        provider = getattr(gateway.jvm.org.apache.kafka.common.config.provider, kind)()
        provider.configure(dict(parameters.get(name, {})))
        providers.put(name, provider)
    transformer = gateway.jvm.org.apache.kafka.common.config.ConfigTransformer(providers)
    found: dict[str, str | None] = {}
    for text in texts:
        try:
            found[text] = transformer.transform({"key": text}).data().get("key")
        except Exception as error:
            assert "ConfigException" in str(error), text
            found[text] = None
    return found


def ours(parameters: Mapping[str, Mapping[str, str]], texts: list[str]) -> dict[str, str | None]:
    worker = {"config.providers": ",".join(PROVIDERS)}
    for name, kind in PROVIDERS.items():
        worker[f"config.providers.{name}.class"] = f"{PACKAGE}.{kind}"
        for key, value in parameters.get(name, {}).items():
            worker[f"config.providers.{name}.param.{key}"] = value
    providers = providers_from(worker)
    found: dict[str, str | None] = {}
    for text in texts:
        try:
            found[text] = providers.resolved({"key": text})["key"]
        except ConfigError:
            found[text] = None
    return found


def test_the_same_placeholders_give_the_same_values(gateway: JavaGateway, tmp_path: Path) -> None:
    (tmp_path / "a.properties").write_text("a = 1\nb=${env:HOME}\nempty=\nü=ö\n", encoding="utf-8")
    (tmp_path / "one").write_text("s\n")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.properties").write_text("a=inner\n")
    file, inner = f"{tmp_path}/a.properties", f"{tmp_path}/inner/a.properties"
    texts = [
        *(f"${{file:{file}:{key}}}" for key in ("a", "b", "empty", "ü", "none", "")),
        f"x${{file:{file}:a}}-${{file:{file}:a}}$y",
        *("${file:/not/there:a}", "${file:a}", "${file::a}", f"${{file:{tmp_path}:a}}", "${file:/a:b:c}"),
        *(f"${{dir:{tmp_path}:{key}}}" for key in ("one", "inner", "none", "../a", "")),
        *("${dir:/not/there:one}", "${dir:one}"),
        *(
            "${env:HOME}",
            "${env:HOME}:${env:PATH}",
            "${env:NOT_SET}",
            "${env:x:HOME}",
            "${env:}",
            "$${env:HOME}",
        ),
        *(
            "${env:HOME",
            "${ env:HOME}",
            "${env:\nHOME}",
            "${nobody:a:b}",
            "${topic}-${timestamp}",
            "${}",
            "${:}",
        ),
        *(f"${{here:{path}:a}}" for path in (file, inner, f"{tmp_path}/inner/../a.properties")),
        *("${some:HOME}", "${some:PATH}"),
        *("${env:HOME}${env:HOME", "${${env:HOME}}", "{env:HOME}", "${env:HOME}}"),
    ]
    parameters = {"here": {"allowed.paths": f"{tmp_path}/inner"}, "some": {"allowlist.pattern": "HO.*|AT"}}
    assert ours(parameters, texts) == javas(gateway, parameters, texts)
