"""The real classes in a JVM, called through py4j, in bulk and without any Java code of ours.

py4j turns boxed numbers into Python's ints and back into Integers, so values never pass through Python:
JsonConverter makes them in a Java array, `System.arraycopy` hands them to reflection, and Jackson writes the
private fields of all results at once, with the class of everything that is declared as Object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from tests.integration.jvm import java_gateway
from tests.java_libraries import fetch
from tests.smt_parity.given import FIRST_OFFSET, TIMESTAMP, Data, Given, Of, json_schema, payload
from tests.smt_parity.neutral import Dropped, Failed, Result, java_results

_JACKSON: Final = "com.fasterxml.jackson."
_CONNECT: Final = "org.apache.kafka.connect."
_HIDDEN: Final = {
    f"{_CONNECT}data.ConnectSchema": ["fieldsByName", "hash"],
    f"{_CONNECT}data.Struct": ["schema"],
}
_RECORD_ARGUMENTS: Final = 10
_MOST_ROWS: Final = 500
"""Of most cases: offsets and timestamps of so many are made once."""


class Refused(Exception):
    """`configure` threw an exception."""


@dataclass(frozen=True)
class JavaStep:
    """A configured transform, perhaps with a predicate."""

    transform: Any
    predicate: Any = None
    negate: bool = False


@contextmanager
def running_java() -> Iterator[Java]:
    library = fetch("transforms")
    with java_gateway(str(library / "*"), heap="256m") as gateway:
        yield Java(gateway)


class Java:
    def __init__(self, gateway: JavaGateway) -> None:
        # Looked up once: each dot of such a name is a round trip.
        self._jvm = gateway.jvm
        self._class = gateway.jvm.java.lang.Class.forName
        self._copy = gateway.jvm.java.lang.System.arraycopy
        self._new_array = gateway.jvm.java.lang.reflect.Array.newInstance
        self._object = self._class("java.lang.Object")
        self._list = gateway.jvm.java.util.ArrayList
        self._connect_headers = gateway.jvm.org.apache.kafka.connect.header.ConnectHeaders
        self._create_time = gateway.jvm.org.apache.kafka.common.record.TimestampType.CREATE_TIME
        self._writer = self._typing_mapper()
        self._plain = self._field_mapper()
        self._with_schemas = self._json_converter("true")
        self._schemaless = self._json_converter("false")
        constructors = self._class(f"{_CONNECT}sink.SinkRecord").getConstructors()
        (self._record,) = (one for one in constructors if one.getParameterCount() == _RECORD_ARGUMENTS)
        (self._datum,) = self._class(f"{_CONNECT}data.SchemaAndValue").getConstructors()
        self._configured: dict[str, tuple[dict[str, str], Any]] = {}
        self._settings: dict[tuple[str, str], dict[str, Any]] = {}
        self._longs: dict[int, Any] = {}

    def configured(self, class_name: str, config: Mapping[str, str]) -> Any:
        """A transform or predicate; that of the last call if it had the same config, and only then, because
        Iceberg's KafkaMetadataTransform keeps its config in a static field. Raises Refused."""
        known, made = self._configured.get(class_name, ({}, None))
        if made is None or known != config:
            made = self._newly_configured(class_name, config)
            self._configured[class_name] = (dict(config), made)
        return made

    def _newly_configured(self, class_name: str, config: Mapping[str, str]) -> Any:
        made = self._new(class_name)
        try:
            made.configure(dict(config))
        except Py4JJavaError as error:
            raise Refused(_failure(error).reason) from None
        return made

    def settings(self, class_name: str, config: Mapping[str, str]) -> dict[str, Any]:
        """The config as the class's own ConfigDef parses it, whether or not its validators like it."""
        asked = (class_name, json.dumps(dict(config)))
        if asked not in self._settings:
            self._settings[asked] = {one["name"]: one["value"] for one in self._validated(class_name, config)}
        return dict(self._settings[asked])

    def mistakes(self, class_name: str, config: Mapping[str, str]) -> list[str]:
        """What the class's own ConfigDef says against the config."""
        return [reason for one in self._validated(class_name, config) for reason in one["errorMessages"]]

    def _validated(self, class_name: str, config: Mapping[str, str]) -> list[dict[str, Any]]:
        found = self._new(class_name).config().validate(dict(config))
        return list(json.loads(self._plain.writeValueAsBytes(found)))

    def transformed(self, steps: Sequence[JavaStep], given: Given) -> list[Result]:
        return self._gathered(self.records(given), lambda record: _applied(steps, record))

    def tested(self, predicate: Any, given: Given) -> list[Result]:
        return [bool(predicate.test(record)) for record in self.records(given)]

    def records(self, given: Given) -> list[Any]:
        """SinkRecords."""
        key_schema, keys = self._values(given.keys)
        value_schema, values = self._values(given.value)
        times = self._times(given)
        headers = [(name, *self._values(data)) for name, data in given.headers]
        arguments = self._objects(_RECORD_ARGUMENTS)
        for at, value in enumerate((given.topic, given.partition, key_schema, None, value_schema)):
            arguments[at] = value
        arguments[8] = self._create_time
        made = []
        offsets = self._range(FIRST_OFFSET, len(given))
        # Of keys that are all null there is nothing to copy.
        columns = [(5, values), (6, offsets), (7, times), *([] if given.key is None else [(3, keys)])]
        for row in range(len(given)):
            for at, column in columns:
                self._copy(column, row, arguments, at, 1)
            if headers:
                arguments[9] = self._headers(headers, row)
            made.append(self._record.newInstance(arguments))
        return made

    def converter(self, class_name: str, config: Mapping[str, str], is_key: bool = False) -> Any:
        made = self._new(class_name)
        made.configure(dict(config), is_key)
        return made

    def header_converter(self, class_name: str, config: Mapping[str, str], is_key: bool = False) -> Any:
        made = self._new(class_name)
        made.configure({**config, "converter.type": "header"})
        return made

    def to_connect(self, converter: Any, values: Sequence[bytes | None]) -> list[Result]:
        return self._gathered(values, lambda value: converter.toConnectData("events", value))

    def to_connect_header(self, converter: Any, name: str, values: Sequence[bytes | None]) -> list[Result]:
        return self._gathered(values, lambda value: converter.toConnectHeader("events", name, value))

    def from_connect(self, converter: Any, data: Data) -> list[bytes | Failed | None]:
        return self._bytes_of(converter, "fromConnectData", ["events"], data)

    def from_connect_header(self, converter: Any, name: str, data: Data) -> list[bytes | Failed | None]:
        return self._bytes_of(converter, "fromConnectHeader", ["events", name], data)

    def jackson_lines(self, data: Data) -> list[bytes]:
        """What a plain ObjectMapper writes of each value."""
        _, values = self._values(data)
        mapper, one = self._new(f"{_JACKSON}databind.ObjectMapper"), self._objects(1)
        found = []
        for row in range(len(data.values)):
            self._copy(values, row, one, 0, 1)
            found.append(bytes(mapper.writeValueAsBytes(one))[1:-1])
        return found

    def _bytes_of(
        self, converter: Any, method_name: str, leading: list[str], data: Data
    ) -> list[bytes | Failed | None]:
        schema, values = self._values(data)
        count = len(leading) + 2
        methods = converter.getClass().getMethods()
        method = next(
            one for one in methods if one.getName() == method_name and one.getParameterCount() == count
        )
        arguments = self._objects(count)
        for at, value in enumerate([*leading, schema]):
            arguments[at] = value
        found: list[bytes | Failed | None] = []
        for row in range(len(data.values)):
            self._copy(values, row, arguments, count - 1, 1)
            try:
                found.append(method.invoke(converter, arguments))
            except Py4JJavaError as error:
                found.append(_failure(error))
        return found

    def _gathered(self, given: Sequence[Any], change: Callable[[Any], Any]) -> list[Result]:
        """What each became; Java writes all results in one go."""
        results: list[Result] = []
        good = self._list()
        for one in given:
            try:
                changed = change(one)
            except Py4JJavaError as error:
                results.append(_failure(error))
                continue
            results.append(Dropped() if changed is None else None)
            if changed is not None:
                good.add(changed)
        found = iter(java_results(self._writer.writeValueAsBytes(good)))
        return [next(found) if result is None else result for result in results]

    def _headers(self, headers: Sequence[tuple[str, Any, Any]], row: int) -> Any:
        made = self._connect_headers()
        arguments = self._objects(2)
        for name, schema, values in headers:
            arguments[0] = schema
            self._copy(values, row, arguments, 1, 1)
            made.add(name, self._datum.newInstance(arguments))
        return made

    def _values(self, data: Data) -> tuple[Any, Any]:
        """The schema, and an Object[] of the values."""
        if isinstance(data, Of):
            envelope = [json_schema(data.schema), [payload(data.schema, value) for value in data.values]]
            found = self._parsed(envelope)
            return found.schema().valueSchema(), found.value().toArray()
        text = json.dumps(list(data.values), ensure_ascii=False).encode()
        return None, self._schemaless.toConnectData("t", text).value().toArray()

    def _times(self, given: Given) -> Any:
        if given.timestamps is None:
            return self._range(TIMESTAMP, len(given))
        return self._array_of_longs(list(given.timestamps))

    def _range(self, first: int, length: int) -> Any:
        """Numbers from the first on, perhaps more than asked for."""
        if length > _MOST_ROWS or first not in self._longs:
            numbers = range(first, first + max(length, _MOST_ROWS))
            self._longs[first] = self._array_of_longs(list(numbers))
        return self._longs[first]

    def _array_of_longs(self, numbers: list[int | None]) -> Any:
        return self._parsed([{"type": "int64", "optional": True}, numbers]).value().toArray()

    def _parsed(self, envelope: list[Any]) -> Any:
        schema = {"type": "array", "items": envelope[0]}
        text = json.dumps({"schema": schema, "payload": envelope[1]}, ensure_ascii=False)
        return self._with_schemas.toConnectData("t", text.encode())

    def _objects(self, length: int) -> Any:
        return self._new_array(self._object, length)

    def _new(self, class_name: str) -> Any:
        return self._class(class_name).getConstructor(None).newInstance(None)

    def _json_converter(self, schemas: str) -> Any:
        config = {"schemas.enable": schemas, "replace.null.with.default": "false"}
        return self.converter(f"{_CONNECT}json.JsonConverter", config)

    def _typing_mapper(self) -> Any:
        """Writes the class of each value that is declared as Object, too."""
        mapper = self._field_mapper()
        mapper.activateDefaultTyping(
            self._one("databind.jsontype.impl.LaissezFaireSubTypeValidator.instance"),
            self._one("databind.ObjectMapper$DefaultTyping.JAVA_LANG_OBJECT"),
        )
        # NaN without quotes, to be told from the string.
        mapper.getFactory().disable(self._one("core.JsonGenerator$Feature.QUOTE_NON_NUMERIC_NUMBERS"))
        hide = getattr(self._jvm, f"{_JACKSON}annotation.JsonIgnoreProperties$Value").forIgnoredProperties
        for class_name, names in _HIDDEN.items():
            ignored = self._jvm.java.util.HashSet(names)
            mapper.configOverride(self._class(class_name)).setIgnorals(hide(ignored))
        return mapper

    def _field_mapper(self) -> Any:
        """Writes private fields."""
        mapper = self._new(f"{_JACKSON}databind.ObjectMapper")
        mapper.setVisibility(self._one("annotation.PropertyAccessor.ALL"), self._visibility("NONE"))
        mapper.setVisibility(self._one("annotation.PropertyAccessor.FIELD"), self._visibility("ANY"))
        return mapper

    def _visibility(self, name: str) -> Any:
        return self._one(f"annotation.JsonAutoDetect$Visibility.{name}")

    def _one(self, name: str) -> Any:
        """A static field of one of Jackson's classes."""
        class_name, _, field = name.rpartition(".")
        return self._class(_JACKSON + class_name).getField(field).get(None)


def _applied(steps: Sequence[JavaStep], record: Any) -> Any:
    for step in steps:
        if record is None:
            return None
        if step.predicate is None or step.predicate.test(record) != step.negate:
            record = step.transform.apply(record)
    return record


def _failure(error: Py4JJavaError) -> Failed:
    thrown = error.java_exception
    name = thrown.getClass().getName()
    if name == "java.lang.reflect.InvocationTargetException":
        thrown = thrown.getCause()
        name = thrown.getClass().getName()
    return Failed(name, thrown.getMessage())
