"""The settings of a Spark session: ours, unless a worker config or the environment says otherwise."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from icestream import java_runtime
from icestream.pipeline import session

_TUNABLES = "spark.executorEnv.GLIBC_TUNABLES"
_SOCKETS, _SOCKET_FOLDER = "spark.python.unix.domain.socket.enabled", "spark.python.unix.domain.socket.dir"
_POOL = "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL"


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    monkeypatch.setattr(session.platform, "libc_ver", lambda: ("glibc", "2.36"))


def test_python_workers_keep_their_memory() -> None:
    settings = session.spark_settings({})

    assert "glibc.malloc.trim_threshold=536870912" in settings[_TUNABLES].split(":")
    assert settings[_POOL] == "system"


def test_a_worker_config_decides_on_memory() -> None:
    assert session.spark_settings({_POOL: "mimalloc"})[_POOL] == "mimalloc"


def test_what_the_environment_says_of_memory_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.check=3")

    assert _TUNABLES not in session.spark_settings({})


def test_another_c_library_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.platform, "libc_ver", lambda: ("", ""))

    assert not {_TUNABLES, _POOL} & session.spark_settings({}).keys()


def test_forks_on_macos_may_call_objective_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icestream.pipeline.session.sys.platform", "darwin")
    settings = session.spark_settings({})
    assert settings["spark.executorEnv.OBJC_DISABLE_INITIALIZE_FORK_SAFETY"] == "YES"
    assert "spark.executorEnv.GLIBC_TUNABLES" not in settings


def test_a_spark_server_has_settings_of_its_own() -> None:
    assert session.spark_settings({"spark.remote": "sc://host"}) == {"spark.remote": "sc://host"}


def test_the_folder_is_its_owners_alone_and_stays_the_same() -> None:
    settings = session.socket_settings({})
    assert settings[_SOCKETS] == "true"
    assert stat.S_IMODE(Path(settings[_SOCKET_FOLDER]).stat().st_mode) == 0o700
    assert session.socket_settings({}) == settings


@pytest.mark.parametrize("given", [{_SOCKETS: "false"}, {_SOCKET_FOLDER: "/run/spark"}])
def test_what_a_worker_config_says_counts(given: dict[str, str]) -> None:
    assert session.socket_settings(given) == {}


def test_a_path_that_is_too_long_for_a_socket_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_own_folder", lambda: "/tmp/" + "x" * 80)
    assert session.socket_settings({}) == {}


@pytest.mark.parametrize("key", ["spark.jars", "spark.jars.packages"])
def test_a_jvm_that_gets_jars_for_queries_compiles_well(key: str) -> None:
    name = "spark.driver.extraJavaOptions"
    assert "TieredStopAtLevel" in session.spark_settings({})[name]
    assert "TieredStopAtLevel" not in session.spark_settings({key: "a"})[name]
    assert session.spark_settings({key: "a", name: "mine"})[name] == "mine"


def test_the_jvm_is_of_the_java_that_all_use(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = java_runtime.Java("/opt/java-21/bin/java", 21, Path("/opt/java-21"))
    monkeypatch.setattr(java_runtime, "choose", lambda: chosen)
    monkeypatch.setattr(session.SparkContext, "_gateway", None)
    monkeypatch.setenv("JAVA_HOME", "/opt/java-25")
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    homes: list[str] = []

    def start(builder: object) -> None:
        homes.append(os.environ["JAVA_HOME"])

    monkeypatch.setattr(session.SparkSession.Builder, "getOrCreate", start)
    session.open_session({})
    assert homes == ["/opt/java-21"]
