"""Client settings, and the translation of the client's errors into ours."""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from icestream.api.config import subset
from icestream.api.errors import (
    ConfigError,
    FatalError,
    Fenced,
    Findings,
    IcestreamError,
    Problem,
    SourceUnavailable,
)
from icestream.kafka.connector_keys import goes_elsewhere
from icestream.kafka.java_settings import (
    ROLES,
    checked,
    is_connection_key,
    is_worker_key,
    translated,
)
from icestream.waits import waiting_for

_log = logging.getLogger(__name__)
_met = threading.local()
_REMEMBERED = 8

ANSWER_SECONDS = 15.0
"""How long a request to Kafka may take before it counts as unavailable."""

_FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.TRANSACTION_COORDINATOR_FENCED,
}


_LOGIN_REFUSED = {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED}
_UNREACHABLE = {KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}
_NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token"
_WHEN = re.compile(r" \(after \d+ms in state .*\)$")


def client_settings(
    worker: Mapping[str, str], role: str | None = None, override: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What a client of librdkafka needs: the worker's connection and `<role>.*` keys, and the overrides.

    Settings of Kafka's Java clients are translated; raises ConfigError with what cannot be.
    """
    names = {key: key for key in _shared(worker, role)}
    names |= {key: f"{role}.{key}" for key in _own(worker, role)}
    names |= {key: f"{role}.override.{key}" for key in override or {}}
    given = {**_inherited(worker, role, override or {}), **(override or {})}
    found = translated(given, role, lambda key: names.get(key, key), override or ())
    if found.problems:
        raise ConfigError(found.problems)
    return dict(found.settings)


def worker_findings(worker: Mapping[str, str]) -> Findings:
    """The client settings of a worker's config: its own, and those under `consumer.` and so on."""
    of_roles = [(own, f"{role}.", _shared(worker, role)) for role in ROLES if (own := _own(worker, role))]
    return _findings([(worker, "", {}), *of_roles])


def override_findings(
    worker: Mapping[str, str], config: Mapping[str, str], own_prefixes: Mapping[str, str] | None = None
) -> Findings:
    """A connector's `<role>.override.*` keys, and those under prefixes of its own, with the role of each, on
    top of the worker's settings."""
    prefixes = {f"{role}.override.": role for role in ROLES} | dict(own_prefixes or {})
    return _findings(
        [
            (own, prefix, _inherited(worker, role, own))
            for prefix, role in prefixes.items()
            if (own := subset(config, prefix))
        ]
    )


def _findings(parts: Iterable[tuple[Mapping[str, str], str, Mapping[str, str]]]) -> Findings:
    found = [checked(settings, prefix, under) for settings, prefix, under in parts]
    return Findings(
        tuple(problem for part in found for problem in part.problems),
        tuple(warning.message for part in found for warning in part.warnings),
    )


def _inherited(worker: Mapping[str, str], role: str | None, override: Mapping[str, str]) -> dict[str, str]:
    """The worker's settings; without its login if the override leads to another Kafka."""
    settings = {**_shared(worker, role), **_own(worker, role)}
    if not goes_elsewhere(settings, override):
        return settings
    return {
        key: value
        for key, value in settings.items()
        if key == "bootstrap.servers" or not is_connection_key(key)
    }


def _shared(worker: Mapping[str, str], role: str | None) -> dict[str, str]:
    """The worker's own client keys; consumers and producers take only where Kafka is and who we are."""
    holds = is_connection_key if role in ("consumer", "producer") else is_worker_key
    return {key: value for key, value in worker.items() if holds(key)}


def _own(worker: Mapping[str, str], role: str | None) -> dict[str, str]:
    own = subset(worker, f"{role}.") if role else {}
    # `admin.listeners` is where REST listens for administrators: the only stranger under these prefixes.
    return {key: value for key, value in own.items() if not key.startswith("listeners")}


@contextmanager
def kafka_errors(doing: str, ask: Callable[[float], object] | None = None) -> Iterator[None]:
    """Raise our errors instead of the client's.

    `ask` is the client's `poll`, for clients that do not poll by themselves: it tells why nobody answered.
    """
    before = getattr(_met, "errors", None)
    _met.errors = deque[KafkaError](maxlen=_REMEMBERED)
    try:
        with waiting_for(f"Kafka: {doing}"):
            yield
        # What the client met until now does not explain a later failure.
        _hear(ask)
    except (TimeoutError, KafkaException, SystemError) as error:
        told = _told(error)
        if told is None or told.code() in _UNREACHABLE:
            _hear(ask)
            raise_if_refused(doing)
        raise _ours(doing, told) from error
    except:
        # A fenced producer with callbacks to call raises a KafkaError, which is no exception: only this sees
        # it.
        if isinstance(raised := sys.exc_info()[1], KafkaError):
            raise _ours(doing, raised) from None
        raise
    finally:
        _met.errors = before


def flush(producer: Producer, seconds: float) -> int:
    """How many messages Kafka has not taken in time. For transactional producers, within `kafka_errors`."""
    try:
        return int(producer.flush(seconds))
    except SystemError as error:
        if error.__cause__ is None:
            # With several callbacks to call the client loses its error; a fatal one it tells whoever asks
            # again.
            producer.begin_transaction()
        raise


def _hear(ask: Callable[[float], object] | None) -> None:
    if ask is not None:
        try:
            ask(0)
        except (KafkaException, SystemError):
            pass
        except:  # noqa: E722  as above
            if not isinstance(sys.exc_info()[1], KafkaError):
                raise


def _told(error: Exception) -> KafkaError | None:
    """What the client says, if it says anything."""
    # Inside its callbacks the client tells a fatal error, such as fencing, as the cause of a SystemError.
    cause = error.__cause__ if isinstance(error, SystemError) else error
    if isinstance(cause, KafkaException) and cause.args and isinstance(cause.args[0], KafkaError):
        return cause.args[0]
    if not isinstance(cause, (TimeoutError, KafkaException)):
        raise error
    return None


def _ours(doing: str, told: KafkaError | None) -> IcestreamError:
    if told is not None and told.code() in _FENCED:
        return Fenced(f"{doing}: another manager of this job is alive ({told.str()})")
    if told is not None and told.code() == KafkaError._INVALID_ARG:
        return ConfigError(
            [Problem("bootstrap.servers", f"{doing}: Kafka's client refuses a setting: {told.str()}")]
        )
    if told is not None and told.code() == KafkaError.TOPIC_EXCEPTION:
        return FatalError(
            f"{doing}: Kafka takes no such topic name; use letters, digits, '.', '_' and '-', at most 249"
        )
    if told is not None and told.code() not in _UNREACHABLE:
        return SourceUnavailable(f"{doing}: {told.str()}")
    reasons = [_text(met) for met in _met.errors or () if met.code() != KafkaError._ALL_BROKERS_DOWN]
    if reasons:
        return SourceUnavailable(f"{doing}: {reasons[-1]}")
    silence = told.str() if told is not None else f"Kafka did not answer in {ANSWER_SECONDS:.0f} s"
    return SourceUnavailable(f"{doing}: {silence}; check bootstrap.servers, security.protocol and the broker")


def raise_if_refused(doing: str) -> None:
    """Within `kafka_errors`: raise if the broker refuses our login, or we its certificate. Waiting would not
    help."""
    for met in _met.errors or ():
        # A token endpoint that is away comes back; the login was not even tried.
        if met.code() in _LOGIN_REFUSED and _NO_TOKEN not in met.str():
            raise _refused(
                "sasl.jaas.config",
                f"{doing}: Kafka refuses the login; check sasl.jaas.config and sasl.mechanism ({_text(met)})",
            )
        if met.code() == KafkaError._SSL and "certificate verify failed" in met.str():
            raise _refused(
                "ssl.truststore.location",
                f"{doing}: the broker's certificate is not trusted; check ssl.truststore.* and the host "
                f"names in bootstrap.servers ({_text(met)})",
            )


def _refused(key: str, message: str) -> ConfigError:
    return ConfigError([Problem(key, message)])


def _text(met: KafkaError) -> str:
    return _WHEN.sub("", met.str())


def log_client_error(error: KafkaError) -> None:
    """librdkafka reconnects by itself; what it meets on the way is worth a line, not a failure."""
    _log.debug("kafka client: %s", error.str())
    # Called in the thread that waits for the client, so what it waits for can be told why.
    errors = getattr(_met, "errors", None)
    if errors is not None:
        errors.append(error)


def quiet(settings: Mapping[str, str | int | bool]) -> dict[str, Any]:
    """The settings with the client's own log lines turned off: what it meets comes through the callback."""
    return {**settings, "error_cb": log_client_error, "logger": _log, "log_level": 2}
