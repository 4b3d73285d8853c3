"""Users and passwords of REST, from the files that Kafka Connect's basic authentication uses.

`BasicAuthSecurityRestExtension` finds a JAAS file through a JVM option; that file names a `.properties` file
of users. Called by `cluster/settings/rest_settings.py`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from icestream.api.config import Config, Setting, Type
from icestream.api.errors import ConfigError, Problem
from icestream.cluster.configs.properties import read_properties

_EXTENSION: Final = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
_LOGIN_MODULE: Final = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
_ENTRY: Final = "KafkaConnect"
_JVM_OPTION: Final = "-Djava.security.auth.login.config="
_CLASSES: Final = "rest.extension.classes"
_JAAS_FILE: Final = "icestream.rest.auth.jaas.file"
_USERS_FILE: Final = "icestream.rest.auth.credentials.file"
_JAAS_TOKEN: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([{};=])|//[^\n]*|/\*.*?\*/|([^\s{};="]+)', re.DOTALL)

AUTH_SETTINGS: Final = (
    Setting(
        _JAAS_FILE,
        Type.STRING,
        "",
        "The JAAS file of basic authentication; otherwise the one that KAFKA_OPTS names.",
        importance="LOW",
    ),
    Setting(
        _USERS_FILE,
        Type.STRING,
        "",
        "The file of users (user=password) of basic authentication, without a JAAS file.",
        importance="LOW",
    ),
)


class _Refused(Exception):
    """Authentication cannot be set up; the text says why and what to do."""


@dataclass(frozen=True)
class _LoginModule:
    name: str
    options: Mapping[str, str]


def read_credentials(
    raw: Config, environ: Mapping[str, str], problems: list[Problem]
) -> dict[str, str] | None:
    """Passwords by user, or None when no authentication is asked for. Read once, as Kafka Connect does."""
    classes = [name.strip() for name in raw.get(_CLASSES, "").split(",") if name.strip()]
    foreign = [name for name in classes if name not in (_EXTENSION, _EXTENSION.rpartition(".")[2])]
    problems += [
        Problem(
            _CLASSES,
            f"'{name}' is a Java extension, which cannot run here; remove it (built in is only {_EXTENSION})",
        )
        for name in foreign
    ]
    files = [key for key in (_USERS_FILE, _JAAS_FILE) if raw.get(key, "").strip()]
    if len(classes) == len(foreign) and not files:
        return None
    key = files[0] if files else _CLASSES
    try:
        return _users(_users_file(raw, environ))
    except (_Refused, ConfigError) as refusal:
        problems.append(Problem(key, f"basic authentication for REST: {refusal}"))
        return None


def _users_file(raw: Config, environ: Mapping[str, str]) -> Path:
    named = raw.get(_USERS_FILE, "").strip()
    if named:
        return Path(named)
    jaas = raw.get(_JAAS_FILE, "").strip() or _jaas_file_of(environ.get("KAFKA_OPTS", ""))
    if not jaas:
        raise _Refused(
            f"no file of users; set '{_USERS_FILE}', or '{_JAAS_FILE}', or KAFKA_OPTS to {_JVM_OPTION}FILE"
        )
    return _users_file_of(Path(jaas))


def _jaas_file_of(options: str) -> str:
    try:
        words = shlex.split(options)
    except ValueError:
        words = options.split()
    named = [word.removeprefix(_JVM_OPTION) for word in words if word.startswith(_JVM_OPTION)]
    # A leading = tells Java to use this file alone.
    return named[-1].removeprefix("=").removeprefix("file:") if named else ""


def _users_file_of(jaas: Path) -> Path:
    try:
        text = jaas.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise _Refused(f"cannot read the JAAS file {jaas}: {error.strerror}; check the path") from None
    modules = _entries(text, jaas).get(_ENTRY)
    if not modules:
        raise _Refused(f"the JAAS file {jaas} has no entry '{_ENTRY}'; add it")
    foreign = [module.name for module in modules if module.name != _LOGIN_MODULE]
    if foreign:
        raise _Refused(
            f"the JAAS file {jaas} uses {foreign[0]}, which cannot run here; use {_LOGIN_MODULE} alone"
        )
    file = modules[0].options.get("file", "").strip()
    if len(modules) > 1 or not file or "${" in file:
        raise _Refused(
            f"the entry '{_ENTRY}' of the JAAS file {jaas} must have one login module with file=\"PATH\""
        )
    return Path(file)


def _users(file: Path) -> dict[str, str]:
    users = read_properties(file)
    if not users:
        raise _Refused(f"{file} has no users, which would let everybody in; add lines of user=password")
    return users


def _entries(text: str, jaas: Path) -> dict[str, list[_LoginModule]]:
    """The login modules of each entry: `Name { class flag option="value" …; };`"""
    tokens = _tokens(text)
    found: dict[str, list[_LoginModule]] = {}
    try:
        for name in tokens:
            _expect(next(tokens), "{")
            found[name] = []
            while (module := next(tokens)) != "}":
                words = [next(tokens)]
                while words[-1] != ";":
                    words.append(next(tokens))
                found[name].append(_LoginModule(module, _options(words[1:-1])))
            _expect(next(tokens), ";")
    except (StopIteration, RuntimeError, ValueError):
        raise _Refused(
            f'the JAAS file {jaas} is broken; write {_ENTRY} {{ {_LOGIN_MODULE} required file="PATH"; }};'
        ) from None
    return found


def _options(words: Sequence[str]) -> dict[str, str]:
    if len(words) % 3 or any(words[at] != "=" for at in range(1, len(words), 3)):
        raise ValueError
    return {words[at]: words[at + 2] for at in range(0, len(words), 3)}


def _expect(token: str, wanted: str) -> None:
    if token != wanted:
        raise ValueError


def _tokens(text: str) -> Iterator[str]:
    for match in _JAAS_TOKEN.finditer(text):
        quoted, sign, word = match.groups()
        if quoted is not None:
            yield re.sub(r"\\(.)", r"\1", quoted)
        elif sign or word:
            yield sign or word
