"""Settings of transforms and predicates, well written and odd, beside what the real classes make of them.

The other tests here are given the settings as Java has parsed them.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from icestream.api.errors import ConfigError
from icestream.transforms.catalog import ALL_PREDICATES, KAFKA_TRANSFORMS
from icestream.transforms.chain import chain_from
from icestream.transforms.declared import declared
from tests.smt_parity.harness import Parity
from tests.smt_parity.java_side import Refused

TEXTS: Final = [
    *("", " ", "a", " a ", "a,b", " a , b ", "a,,b", ",", "a,", "a,a", "a:b", "a:b:c", "a:", ":b", "a: b"),
    *(" a : int8 ", "a:int8:", "int8", "int8::", "INT8 ", "a:INT8,b:string", "int8,string", "a:bytes"),
    *("bytes", "a:nope", "true", " TRUE ", "yes", "1", " 7 ", "7.0", "+7", "0x7", "99999999999", "V2", "v1"),
    *("move", "MOVE", "unix", "UNIX", "seconds", "Date", "(", "[a", "a.*", "yyyy", "${topic}", "null", "ü"),
    *("a\n", "\ta", "\u00a0a", "a!", "?", "!", "`a", "x`"),
]
NEEDED: Final[dict[str, dict[str, str]]] = {
    "Cast": {"spec": "a:int8"},
    "DropHeaders": {"headers": "h"},
    "ExtractField": {"field": "a"},
    "HeaderFrom": {"fields": "a", "headers": "h", "operation": "move"},
    "HoistField": {"field": "a"},
    "InsertField": {"static.field": "a", "static.value": "b"},
    "InsertHeader": {"header": "h", "value.literal": "1"},
    "MaskField": {"fields": "a"},
    "RegexRouter": {"regex": "a", "replacement": "b"},
    "SetSchemaMetadata": {"schema.name": "n"},
    "TimestampConverter": {"target.type": "unix", "format": "yyyy"},
    "ValueToKey": {"fields": "a"},
    "HasHeaderKey": {"name": "h"},
    "TopicNameMatches": {"pattern": "a"},
}
CLASSES: Final = [
    *(("transforms", one.class_names[-1], one.settings) for one in KAFKA_TRANSFORMS),
    *(("predicates", one.class_name, one.settings) for one in ALL_PREDICATES),
]
EARLIER: Final = "timestamp.format"
"""Of TimestampRouter: what is no pattern fails each record in Java, and the config here."""
EARLIER_TEXTS: Final = (("replacement", "${topic}"), ("value.literal", "[a"))
"""Of RegexRouter and InsertHeader: no such group, and what begins as a list does; refused here."""
REFUSED: Final = "refused"


@pytest.mark.parametrize(("family", "class_name", "settings"), CLASSES, ids=[one[1] for one in CLASSES])
def test_settings(parity: Parity, family: str, class_name: str, settings: Any) -> None:
    needed = NEEDED.get(class_name.rpartition(".")[2].partition("$")[0], {})
    configs: list[dict[str, str]] = [needed]
    for one in settings.settings:
        if one.name != EARLIER:
            taken = [text for text in TEXTS if (one.name, text) not in EARLIER_TEXTS]
            configs.append({key: text for key, text in needed.items() if key != one.name})
            configs.extend({**needed, one.name: text} for text in taken)
    ours = [_ours(family, class_name, config) for config in configs]
    theirs = [_theirs(parity, class_name, config) for config in configs]
    parity.compare("settings", ours, theirs, given=configs)


def _ours(family: str, class_name: str, config: dict[str, str]) -> Any:
    whole = {family: "x", f"{family}.x.type": class_name}
    whole |= {f"{family}.x.{key}": text for key, text in config.items()}
    try:
        chain_from(whole)
    except ConfigError:
        return REFUSED
    (one,) = declared(whole)
    return {key: value for key, value in one.parse(whole).items() if key not in ("predicate", "negate")}


def _theirs(parity: Parity, class_name: str, config: dict[str, str]) -> Any:
    try:
        parity.java.configured(class_name, config)
    except Refused:
        return REFUSED
    if parity.java.mistakes(class_name, config):
        return REFUSED
    return parity.java.settings(class_name, config)
