"""Transforms and predicates: their definitions, and configs that have them, right and wrong."""

from __future__ import annotations

from tests.parity.table import GET, PUT, RUNNING, SINK, SOURCE, Request, Scenario, create, each

_KAFKA = "org.apache.kafka.connect.transforms."
_SIDED = (
    *("Cast", "ExtractField", "Flatten", "HeaderFrom", "HoistField", "InsertField", "MaskField"),
    *("ReplaceField", "SetSchemaMetadata", "TimestampConverter"),
)
_PLAIN = ("DropHeaders", "Filter", "InsertHeader", "RegexRouter", "TimestampRouter", "ValueToKey")
_PREDICATES = ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")
_NAMES = [
    *(f"{_KAFKA}{name}$Value" for name in _SIDED),
    f"{_KAFKA}Cast$Key",
    *(f"{_KAFKA}{name}" for name in _PLAIN),
    *(f"{_KAFKA}predicates.{name}" for name in _PREDICATES),
    *("RegexRouter", "RecordIsTombstone", "Value", "Cast", "Cast$Value", "TopicNameMatchesPredicate"),
]


def _one(type_: str | None, **settings: str | None) -> dict[str, str | None]:
    """A transform called a; underscores stand for dots."""
    named = {f"transforms.a.{key.replace('_', '.')}": value for key, value in settings.items()}
    return {"transforms": "a", "transforms.a.type": type_, **named}


def _predicate(type_: str, **settings: str) -> dict[str, str | None]:
    named = {f"predicates.p.{key.replace('_', '.')}": value for key, value in settings.items()}
    return {"predicates": "p", "predicates.p.type": type_, **named}


_FILTER = f"{_KAFKA}Filter"
_CAST = f"{_KAFKA}Cast$Value"
_MATCHES = f"{_KAFKA}predicates.TopicNameMatches"

_RIGHT: list[dict[str, str | None]] = [
    _one(_CAST, spec="a:int8"),
    _one(_CAST, spec="a: INT8 , b : string", replace_null_with_default="FALSE"),
    _one(f"{_KAFKA}Cast$Key", spec="string"),
    _one("DropHeaders", headers="a, b"),
    _one(f"{_KAFKA}ExtractField$Value", field="a", field_syntax_version="v2"),
    _one(f"{_KAFKA}Flatten$Key", delimiter="_"),
    _one(f"{_KAFKA}HeaderFrom$Value", fields="a", headers="h", operation="move"),
    _one(f"{_KAFKA}HoistField$Value", field="a"),
    _one(f"{_KAFKA}InsertField$Value", topic_field="t!", static_field="s", static_value="x"),
    _one("InsertHeader", header="h", value_literal="7"),
    _one(f"{_KAFKA}MaskField$Value", fields="a", replacement="x"),
    _one("RegexRouter", regex="(.*)", replacement="x-$1"),
    _one(f"{_KAFKA}ReplaceField$Value", include="a", exclude="b", renames="a:c"),
    _one(f"{_KAFKA}SetSchemaMetadata$Value", schema_name="n", schema_version="2"),
    _one(f"{_KAFKA}TimestampConverter$Value", target_type="unix", field="t", unix_precision="seconds"),
    _one("TimestampRouter", topic_format="${topic}_${timestamp}", timestamp_format="yyyy"),
    _one("ValueToKey", fields="a,b"),
    {**_one(_FILTER, predicate="p"), **_predicate(_MATCHES, pattern="x.*")},
    {**_one(_FILTER, predicate="p", negate="true"), **_predicate("HasHeaderKey", name="h")},
    {**_one(_FILTER, predicate="p"), **_predicate("RecordIsTombstone")},
    _predicate("RecordIsTombstone"),
    {"transforms": " a , b ", "transforms.a.type": _FILTER, "transforms.b.type": _FILTER},
    {"transforms": "a.b", "transforms.a.b.type": _FILTER},
    _one(_FILTER, plugin_version="4.3.1"),
    {"transforms.a.type": "x"},
    _one(_FILTER, unheard_of="x"),
]
_WRONG: list[dict[str, str | None]] = [
    {"transforms": "a"},
    {"predicates": "p"},
    {"transforms": None},
    {"predicates": None},
    _one(None),
    _one(""),
    _one("No.Such"),
    _one("Value", spec="a:int8"),
    _one("Cast$Value", spec="a:int8"),
    _one(f"{_KAFKA}Cast", spec="a:int8"),
    _one(_MATCHES),
    _one("HasHeaderKey"),
    _predicate(_FILTER),
    _predicate("No.Such"),
    {"transforms": "a,a", "transforms.a.type": _FILTER},
    {"transforms": "a,,b", "transforms.a.type": _FILTER},
    {"transforms": ","},
    {"predicates": "p,p", "predicates.p.type": "RecordIsTombstone"},
    _one(_FILTER, negate="true"),
    _one(_FILTER, negate=None),
    _one(_FILTER, negate="x", predicate="p"),
    _one(_FILTER, plugin_version="1.0"),
    _one(_FILTER, plugin_version=""),
    {**_predicate("HasHeaderKey", name="x"), "predicates.p.plugin.version": "4.2"},
    _one(_CAST),
    _one(_CAST, spec=""),
    _one(_CAST, spec=None),
    _one(_CAST, spec="a,b"),
    _one(_CAST, spec="a:b:c"),
    _one(_CAST, spec="a:bytes", replace_null_with_default="maybe"),
    _one(_CAST, spec="a:int8,int8"),
    _one("DropHeaders"),
    _one("DropHeaders", headers=" "),
    _one("DropHeaders", headers="a,a"),
    _one("DropHeaders", headers="a,,b"),
    _one(f"{_KAFKA}ExtractField$Value", field_syntax_version="v3"),
    _one(f"{_KAFKA}ExtractField$Value", field=None, field_syntax_version=None),
    _one(f"{_KAFKA}HeaderFrom$Value"),
    _one(f"{_KAFKA}HeaderFrom$Value", fields="", headers="", operation="MOVE"),
    _one(f"{_KAFKA}HoistField$Value"),
    _one("InsertHeader", header=None, value_literal=None),
    _one(f"{_KAFKA}MaskField$Value", fields="a,a", replacement=""),
    _one(f"{_KAFKA}ReplaceField$Value", include="a,a", exclude="a,,b", renames="a"),
    _one(f"{_KAFKA}SetSchemaMetadata$Value", schema_version="x"),
    _one(f"{_KAFKA}TimestampConverter$Value", unix_precision="x"),
    _one(f"{_KAFKA}TimestampConverter$Value", target_type="String"),
    _one("ValueToKey"),
    _predicate("HasHeaderKey"),
    _predicate("HasHeaderKey", name=""),
    _predicate(_MATCHES, pattern=""),
]
_ONLY_OURS_ARE_WRONG: list[dict[str, str | None]] = [
    _one(_FILTER, predicate="p"),
    _one(f"{_KAFKA}InsertField$Value"),
    _one(f"{_KAFKA}SetSchemaMetadata$Value"),
    _one(f"{_KAFKA}TimestampConverter$Value", target_type="string"),
    _one(f"{_KAFKA}HeaderFrom$Value", fields="a", headers="b,c", operation="copy"),
]
_REGEXES: list[dict[str, str | None]] = [
    _one("RegexRouter"),
    _predicate(_MATCHES),
    _one("RegexRouter", regex="(", replacement="x"),
    _predicate(_MATCHES, pattern="*"),
]


def _validate(more: dict[str, str | None], differs: str = "") -> Request:
    return PUT(
        "/connector-plugins/FileStreamSink/config/validate", {**SINK, "name": "c", **more}, differs=differs
    )


_HOIST = {"transforms": "a", "transforms.a.type": f"{_KAFKA}HoistField$Value", "transforms.a.field": "line"}

SCENARIOS = [
    *each("definition", *(GET(f"/connector-plugins/{name}/config") for name in _NAMES)),
    *each("definition", GET(f"/connector-plugins/{_KAFKA}Cast/config", differs="abstract-class")),
    *each("right", *map(_validate, _RIGHT)),
    *each("wrong", *map(_validate, _WRONG)),
    *each("only ours", *(_validate(more, "own-opinion") for more in _ONLY_OURS_ARE_WRONG)),
    *each("in other words", *(_validate(more, "regex-words") for more in _REGEXES)),
    *each("refused as validated", *(PUT("/connectors/c/config", {**SINK, **bad}) for bad in _WRONG[5:15])),
    Scenario(
        "a source with a transform",
        (
            create(config={**SOURCE, **_HOIST}),
            RUNNING,
            GET("/connectors/c"),
            GET("/connectors/c/config"),
            GET("/connectors/c/tasks"),
            PUT("/connectors/c/config", {**SOURCE, **_HOIST, "transforms.a.field": "other"}),
            RUNNING,
        ),
    ),
]
