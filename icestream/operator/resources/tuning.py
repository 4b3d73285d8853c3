"""Fields that tune a worker: resources, probes, `jvmOptions`, `logging`, `metricsConfig`, `rack`."""

from __future__ import annotations

import re
from typing import Final

from icestream.operator.resources.cluster_spec import Probe, Tree
from icestream.operator.resources.draft import UNSUPPORTED, Draft
from icestream.operator.resources.fields import Fields, property_text, tree
from icestream.operator.resources.invalid import InvalidResource

METRICS_PORT: Final = 9404
_MEMORY: Final = re.compile(r"([1-9][0-9]{0,15})([kKmMgGtT]?)")
_OPTION: Final = re.compile(r"[A-Za-z0-9_]+")
_SYSTEM_PROPERTY: Final = re.compile(r"[A-Za-z0-9_.\-]+")
_DRIVER_OPTIONS: Final = "spark.driver.extraJavaOptions"
_ALWAYS: Final = "-XX:+ExitOnOutOfMemoryError -XX:-UsePerfData"
_LEVELS: Final = ("OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL")
_ROOTS: Final = ("rootLogger.level", "log4j.rootLogger", "connect.root.logger.level", "rootLogger")
_OF_ROOT: Final = {"WARN": "WARNING", "TRACE": "DEBUG", "ALL": "DEBUG", "FATAL": "ERROR", "OFF": "ERROR"}
_LOGGER: Final = re.compile(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*")


def read_resources(fields: Fields, key: str = "resources") -> Tree:
    found = fields.map(key)
    for path in found.others(("requests", "limits", "claims")):
        raise InvalidResource(f"{path} is not a part of resources; take requests and limits")
    amounts = {}
    for part in ("requests", "limits"):
        given = found.map(part)
        if given.values:
            amounts[part] = {name: given.quantity(name, "0") for name in given.values}
    return amounts


def read_probe(fields: Fields, key: str, default: Probe, draft: Draft) -> Probe:
    given = fields.map(key)
    names = ("initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold", "successThreshold")
    draft.has_no_effect(given, names)
    return Probe(
        default.path,
        given.number("initialDelaySeconds", default.initial_delay),
        given.number("periodSeconds", default.period, at_least=1),
        given.number("timeoutSeconds", default.timeout, at_least=1),
        given.number("failureThreshold", default.failures, at_least=1),
        # Kubernetes takes only 1 for liveness.
        1 if key == "livenessProbe" else given.number("successThreshold", default.successes, at_least=1),
    )


def read_jvm_options(fields: Fields, draft: Draft) -> None:
    """The JVM is Spark's driver; what `config` says of it is left alone."""
    jvm = fields.map("jvmOptions")
    if not jvm.values:
        return
    draft.has_no_effect(jvm, ("-Xmx", "-Xms", "-XX", "javaSystemProperties", "gcLoggingEnabled"))
    options = [_ALWAYS]
    if "-Xmx" in jvm:
        draft.properties.setdefault("spark.driver.memory", _spark_memory(jvm, "-Xmx"))
    if "-Xms" in jvm:
        _spark_memory(jvm, "-Xms")
        options.append(f"-Xms{jvm.required('-Xms')}")
    switches = jvm.map("-XX")
    for name, value in switches.values.items():
        if not _OPTION.fullmatch(name):
            raise InvalidResource(f"{switches.at(name)} is no option of a JVM; mend its name")
        text = property_text(value, switches.at(name))
        is_switch = text in ("true", "false")
        options.append(
            f"-XX:{'+' if text == 'true' else '-'}{name}" if is_switch else _option(f"-XX:{name}=", text)
        )
    for one in jvm.maps("javaSystemProperties"):
        name = one.required("name")
        if not _SYSTEM_PROPERTY.fullmatch(name):
            raise InvalidResource(f"{one.at('name')} is no name of a system property; mend it")
        options.append(_option(f"-D{name}=", one.text("value")))
    draft.properties.setdefault(_DRIVER_OPTIONS, " ".join(options))


def _option(start: str, value: str) -> str:
    """As Spark takes options apart: by blanks outside of quotes."""
    if re.fullmatch(r"[\w./:,@%+=\-]*", value, re.ASCII):
        return start + value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{start}{escaped}"'


def _spark_memory(fields: Fields, key: str) -> str:
    value = fields.values[key]
    amount = _MEMORY.fullmatch(str(value)) if not isinstance(value, bool) else None
    if amount is None:
        raise InvalidResource(f"{fields.at(key)} is no amount of memory; write it as 2g or 512m")
    # To Spark a number without a unit is of mebibytes, to a JVM of bytes.
    return amount[0].lower() if amount[2] else f"{max(1, int(amount[1]) // 1024)}k"


def read_logging(fields: Fields, draft: Draft) -> None:
    logging = fields.map("logging")
    if not logging.values:
        return
    if logging.choice("type", ("inline", "external"), "inline") == "external":
        draft.warn(
            UNSUPPORTED,
            f"{logging.path} is external: a Log4j file has no effect here; put the levels into "
            "'loggers' of type inline",
        )
        return
    given = logging.map("loggers")
    levels: dict[str, str] = {}
    for key, value in given.values.items():
        text = property_text(value, given.at(key))
        name = _logger_of(key, given)
        level = text.split(",")[0].strip().upper()
        if key.endswith(".name"):
            continue
        if name is None or level not in _LEVELS:
            draft.warn(UNSUPPORTED, f"{given.at(key)} has no effect: levels are all that is taken of Log4j")
        elif name == "":
            draft.properties.setdefault("icestream.log.level", _OF_ROOT.get(level, level))
        else:
            levels[name] = level
    if levels:
        listed = ",".join(f"{name}={level}" for name, level in levels.items())
        draft.properties.setdefault("icestream.log.loggers", listed)


def _logger_of(key: str, given: Fields) -> str | None:
    """The logger whose level a key sets: empty for the root, None if it sets none."""
    if key in _ROOTS:
        return ""
    name = key.removeprefix("log4j.logger.") if key.startswith("log4j.logger.") else ""
    if key.startswith("logger.") and key.endswith(".level"):
        name = key.removeprefix("logger.").removesuffix(".level")
        name = given.text(f"logger.{name}.name", name)
    return name if _LOGGER.fullmatch(name) else None


def read_metrics(fields: Fields, draft: Draft) -> int | None:
    """The port of metrics, if the resource wants one."""
    metrics = fields.map("metricsConfig")
    if not metrics.values:
        return None
    kind = metrics.choice("type", ("jmxPrometheusExporter", "strimziMetricsReporter"))
    if kind == "jmxPrometheusExporter":
        draft.warn(
            UNSUPPORTED,
            f"{metrics.path}: the exporter's rules are not read; metrics have the names of Strimzi's rules",
        )
    elif allowed := metrics.map("values").texts("allowList"):
        draft.properties["prometheus.metrics.reporter.allowlist"] = ",".join(allowed)
        draft.warn(UNSUPPORTED, f"{metrics.path}.values.allowList: the worker tells its other metrics, too")
    draft.properties["metrics.listeners"] = f"http://:{METRICS_PORT}"
    return METRICS_PORT


def read_rack(fields: Fields, draft: Draft) -> None:
    rack = fields.map("rack")
    if not rack.values:
        return
    kind = rack.choice("type", ("topology-label", "environment-variable"), "topology-label")
    if kind == "topology-label":
        draft.warn(
            UNSUPPORTED,
            f"{rack.path} needs the labels of nodes, which workers may not read; take type "
            "environment-variable with envVarName",
        )
        return
    name = rack.required("envVarName")
    if not re.fullmatch(r"[-._a-zA-Z][-._a-zA-Z0-9]*", name):
        raise InvalidResource(f"{rack.at('envVarName')} is no name of a variable; mend it")
    draft.properties["consumer.client.rack"] = f"${{strimzienv:{name}}}"


__all__ = [
    "METRICS_PORT",
    "read_jvm_options",
    "read_logging",
    "read_metrics",
    "read_probe",
    "read_rack",
    "read_resources",
    "tree",
]
