"""Our transforms and converters beside the real Java classes: the same configs and records through both.

How to write parity tests (see `test_harness.py`):

A table, in `tests/smt_parity/test_cast.py`; `parity` is a fixture of the session, a row is a case::

    @pytest.mark.parametrize("spec", ["a:int8", "a:string,b:boolean"])
    def test_casts(parity: Parity, spec: str) -> None:
        given = Given(Json([{"a": 5}, {"a": "x"}, {"a": None}, {}, "no map", None]))
        parity.check([Smt(Cast, {"spec": spec})], given)
        schema = struct(("a", ConnectSchema(Kind.INT64, optional=True)))
        keys = Of(schema, [{"a": 5}, {"a": None}])
        parity.check([Smt(Cast, {"spec": spec}, Side.KEY)], Given(Json([{}, {}]), key=keys))

Configs are written as strings; `configured` gets what the Java class's own ConfigDef makes of them. A config
that Java's `configure` refuses must raise ConfigError with the same message. Several steps are a chain: that
is how schemaless values get types that JSON lacks (`Cast` to int16, then the transform in question). Failures
must have the same exception class and message; with `reasons=False` only the failing itself is compared.

Generated: draw configs and many records at once, since a JVM round trip costs more than a row::

    @generated(examples=40)
    @given(config=st.sampled_from([…]), records=givens(Shape(names=("a", "b"))))
    def test_casts_anything(parity: Parity, config: dict[str, str], records: Given) -> None:
        parity.check([Smt(Cast, config)], records)

Converters: `parity.check_to_connect("JsonConverter", ours, java_class, config, values)` with bytes in, and
`parity.check_from_connect(…, data)` with bytes out; `parity.java.to_connect_header` and
`from_connect_header` give the Java side of header converters, `parity.compare(subject, ours, theirs)`
compares and counts any two lists of results.

The run ends with a line per subject: "parity Cast: 812 of 812 cases agree".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from icestream.api.errors import ConfigError
from icestream.records.records import ConversionError, Converter
from icestream.records.values import Value
from icestream.transforms.catalog import ICEBERG, ICEBERG_TRANSFORMS, KAFKA
from icestream.transforms.chain import Chain, Step
from icestream.transforms.groups import Side
from tests import long_form
from tests.smt_parity.given import Data, Given, our_records, our_value
from tests.smt_parity.java_side import Java, JavaStep, Refused
from tests.smt_parity.neutral import Dropped, Failed, Result, our_data, our_rows
from tests.tally import Tally

PREDICATES: Final = f"{KAFKA}predicates."
_SHORTER: Final = 4
_LEAST_EXAMPLES: Final = 10
_ICEBERG_CLASSES: Final = {one.class_name for one in ICEBERG_TRANSFORMS}
_ACCIDENTS: Final = ("java.lang.NullPointerException", "java.lang.ClassCastException")
"""Where Java stumbles, we say what is wrong with the record."""


@dataclass(frozen=True)
class Test:
    """A predicate of ours, with its config as strings."""

    __test__ = False

    ours: type[Any]
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def java_class(self) -> str:
        return PREDICATES + self.ours.__name__


@dataclass(frozen=True)
class Smt:
    """A transform of ours, with its config as strings; the Java class has the same name."""

    ours: type[Any]
    config: Mapping[str, str] = field(default_factory=dict)
    side: Side | None = Side.VALUE
    """None: the class has no `$Key` and `$Value`."""
    predicate: Test | None = None
    negate: bool = False

    @property
    def java_class(self) -> str:
        package = ICEBERG if f"{ICEBERG}{self.ours.__name__}" in _ICEBERG_CLASSES else KAFKA
        suffix = "" if self.side is None else f"${self.side.value}"
        return f"{package}{self.ours.__name__}{suffix}"


def generated(examples: int) -> Callable[[Any], Any]:
    """Hypothesis settings: the same examples in every run, a part of them unless the long form was asked for;
    no time limit of their own."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
    chosen = settings(
        max_examples=examples if long_form.is_asked() else max(_LEAST_EXAMPLES, examples // _SHORTER),
        derandomize=True,
        database=None,
        deadline=None,
        print_blob=False,
        suppress_health_check=checks,
    )

    def marked(test: Any) -> Any:
        test = chosen(test)
        return pytest.mark.long(test) if long_form.is_asked() else test

    return marked


@dataclass(frozen=True)
class Parity:
    java: Java
    tally: Tally

    def check(
        self,
        steps: Sequence[Smt],
        given: Given,
        *,
        subject: str | None = None,
        reasons: bool = True,
        more_is_fine: bool = False,
    ) -> None:
        """The chain on both sides; counted under the name of its last transform."""
        subject = subject or steps[-1].ours.__name__
        try:
            java_steps = [self._java_step(step) for step in steps]
        except Refused as refused:
            self._compare_refusal(subject, steps, str(refused))
            return
        chain = Chain([self._our_step(step) for step in steps])
        ours = _our_results(chain, given)
        theirs = self.java.transformed(java_steps, given)
        self.compare(subject, ours, theirs, given=given, reasons=reasons, more_is_fine=more_is_fine)

    def check_predicate(self, test: Test, given: Given) -> None:
        subject = test.ours.__name__
        try:
            java_predicate = self.java.configured(test.java_class, test.config)
        except Refused as refused:
            self._compare(subject, [(str(refused), self._refusal(lambda: self._our_predicate(test)))])
            return
        predicate = self._our_predicate(test)
        found: dict[int, bool] = {}
        for records in our_records(given):
            found.update(zip(records.rows.tolist(), predicate.test(records).tolist(), strict=True))
        ours = [found[row] for row in range(len(given))]
        self.compare(subject, ours, self.java.tested(java_predicate, given), given=given)

    def check_to_connect(
        self,
        subject: str,
        ours: Converter,
        java_class: str,
        config: Mapping[str, str],
        values: Sequence[bytes | None],
        *,
        is_key: bool = False,
        reasons: bool = False,
    ) -> None:
        """Bytes in. Java's reasons are Jackson's or Avro's words, so they are not compared unless asked
        for."""
        theirs = self.java.to_connect(self.java.converter(java_class, config, is_key), values)
        self.compare(subject, converted(ours, values), theirs, given=values, reasons=reasons)

    def check_from_connect(
        self,
        subject: str,
        ours: Converter,
        java_class: str,
        config: Mapping[str, str],
        data: Data,
        *,
        is_key: bool = False,
        read: Callable[[bytes], Any] = bytes,
    ) -> None:
        """Bytes out; `read=json.loads` where the order of keys does not matter. All values of `data` must be
        of one type."""
        theirs = self.java.from_connect(self.java.converter(java_class, config, is_key), data)
        mine = written(ours, our_value(data), len(data.values))

        def meaning(one: bytes | Failed | None) -> Any:
            return read(one) if isinstance(one, bytes) else one

        self.compare(subject, [*map(meaning, mine)], [*map(meaning, theirs)], given=data, reasons=False)

    def compare(
        self,
        subject: str,
        ours: Sequence[Any],
        theirs: Sequence[Any],
        *,
        given: Any = None,
        reasons: bool = True,
        more_is_fine: bool = False,
    ) -> None:
        """Counts what agrees; fails with the first difference. With `more_is_fine` we may take what Java
        fails."""
        assert len(ours) == len(theirs), f"{subject}: {len(ours)} results, of Java {len(theirs)}"
        pairs = list(zip(theirs, ours, strict=True))
        if more_is_fine:
            pairs = [(one if not isinstance(one, Failed) else mine, mine) for one, mine in pairs]
        bare = [not reasons or getattr(one, "exception", None) in _ACCIDENTS for one, _ in pairs]
        pairs = [
            (*map(_without_reason, pair),) if without else pair
            for pair, without in zip(pairs, bare, strict=True)
        ]
        self._compare(subject, pairs, given)

    def _compare(self, subject: str, pairs: Sequence[tuple[Any, Any]], given: Any = None) -> None:
        different = [
            (row, *pair)
            for row, pair in enumerate(pairs)
            if pair[0] != pair[1] and _by_numbers(pair[0]) != _by_numbers(pair[1])
        ]
        self.tally.add(subject, tried=len(pairs), agreed=len(pairs) - len(different))
        if different:
            row, theirs, ours = different[0]
            raise AssertionError(
                f"{subject}: {len(different)} of {len(pairs)} cases differ; the first is row {row}:\n"
                f"  Java: {theirs}\n  ours: {ours}\n  given: {_row(given, row)}"
            )

    def _compare_refusal(self, subject: str, steps: Sequence[Smt], theirs: str) -> None:
        ours = self._refusal(lambda: [self._our_step(step) for step in steps])
        self._compare(subject, [(theirs, ours)], [step.config for step in steps])

    def _refusal(self, make: Callable[[], Any]) -> str | None:
        try:
            make()
        except ConfigError as error:
            return str(error)
        return None

    def _our_step(self, step: Smt) -> Step:
        configured = step.ours.configured(
            self.java.settings(step.java_class, step.config), step.side or Side.VALUE
        )
        predicate = None if step.predicate is None else self._our_predicate(step.predicate)
        return Step(step.ours.__name__, step.java_class, configured, predicate, step.negate)

    def _our_predicate(self, test: Test) -> Any:
        return test.ours.configured(self.java.settings(test.java_class, test.config))

    def _java_step(self, step: Smt) -> JavaStep:
        predicate = None
        if step.predicate is not None:
            predicate = self.java.configured(step.predicate.java_class, step.predicate.config)
        return JavaStep(self.java.configured(step.java_class, step.config), predicate, step.negate)


def _our_results(chain: Chain, given: Given) -> list[Result]:
    outcome = chain.run(our_records(given))
    found: dict[int, Result] = {row: Dropped() for row in outcome.dropped}
    for row, failed in outcome.failed.items():
        found[row] = Failed(failed.exception, failed.reason)
    for records in outcome.records:
        rows = our_rows(records)
        assert not found.keys() & rows.keys(), "a row is in two groups"
        found.update(rows)
    return [found[row] for row in range(len(given))]


def converted(ours: Converter, values: Sequence[bytes | None], topic: str = "events") -> list[Result]:
    """What our converter reads, in the form of Java's results."""
    answer = ours.to_connect(topic, values)
    found: dict[int, Result] = {
        row: Failed(failure.exception, failure.reason) for row, failure in answer.failed.items()
    }
    for rows, value in answer.groups:
        positions = range(len(values)) if rows is None else rows.tolist()
        found.update(zip(positions, our_data(value, len(positions)), strict=True))
    return [found[row] for row in range(len(values))]


def written(ours: Converter, value: Value, length: int) -> list[bytes | Failed | None]:
    try:
        return list(ours.from_connect("events", value, length))
    except ConversionError as error:
        bad = {row: Failed(why.exception, why.reason) for row, why in error.failed.items()}
    good = np.setdiff1d(np.arange(length), np.fromiter(bad, np.int64, len(bad)))
    rest = written(ours, value.take(good), len(good)) if value is not None and len(good) else []
    found: dict[int, bytes | Failed | None] = {**bad, **dict(zip(good.tolist(), rest, strict=True))}
    return [found[row] for row in range(length)]


def _without_reason(one: Any) -> Any:
    return Failed("", None) if isinstance(one, Failed) else one


def _row(given: Any, row: int) -> Any:
    """What the row was made of, for the message."""
    if isinstance(given, Given):
        key = given.keys.values[row]
        schema = getattr(given.value, "schema", None)
        return {"key": key, "value": given.value.values[row], "schema": schema, "headers": given.headers}
    if isinstance(given, Sequence):
        return given[row]
    return getattr(given, "values", given)[row] if hasattr(given, "values") else given


_DOUBLE: Final = re.compile(r"-?\d\.\d{10,}E-?\d+|-?\d+\.\d{10,}")


def _by_numbers(result: Any) -> str:
    """As text, with the shortest digits of each double: Java before its version 19 writes more of some."""
    return _DOUBLE.sub(lambda match: repr(float(match[0])), repr(result))
