"""What other readers find in the objects: fastavro, pyarrow, a plain JSON parser."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import io
import json
import zlib
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastavro import _read_py

from icestream.api.errors import ConfigError
from icestream.connectors.s3.formats.parquet import ParquetFiles
from icestream.connectors.s3.layout import layout_of
from icestream.records.column import Column
from icestream.records.records import Header, Records
from icestream.records.schema import (
    BYTES,
    OPTIONAL_STRING,
    STRING,
    ConnectSchema,
    Kind,
    array,
    date,
    decimal,
    map_of,
    struct,
    time,
    timestamp,
)
from tests.unit.connectors.s3.topic_records import JSON, Bucket, group, json_groups, structs, written

FORMATS = "io.confluent.connect.s3.format."
AVRO, PARQUET, RAW = (
    f"{FORMATS}{one}" for one in ("avro.AvroFormat", "parquet.ParquetFormat", "bytearray.ByteArrayFormat")
)
NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
SCHEMA = struct(
    ("i8", ConnectSchema(Kind.INT8)),
    ("i64", ConnectSchema(Kind.INT64, optional=True)),
    ("f", ConnectSchema(Kind.FLOAT64)),
    ("ok", ConnectSchema(Kind.BOOLEAN, optional=True, default=True)),
    ("s", OPTIONAL_STRING),
    ("b", BYTES),
    ("d", decimal(2)),
    ("day", date()),
    ("time", time()),
    ("at", timestamp(optional=True)),
    ("list", array(OPTIONAL_STRING)),
    ("map", map_of(STRING, ConnectSchema(Kind.INT32))),
    ("pairs", map_of(ConnectSchema(Kind.INT32), OPTIONAL_STRING)),
    ("in", struct(("x", STRING), optional=True)),
    name="com.example.Order",
    version=3,
)
FULL: dict[str, Any] = {
    "i8": -5, "i64": 2**60, "f": 1.5, "ok": False, "s": "é\n\"", "b": b"\x00\xff", "d": Decimal("-12.50"),
    "day": dt.date(2026, 1, 31), "time": dt.time(1, 2, 3), "at": NOON, "list": ["a", None], "map": [("k", 1)],
    "pairs": [(7, "seven"), (8, None)], "in": {"x": "y"},
}  # fmt: skip
BARE = {
    **FULL,
    "i64": None,
    "ok": None,
    "s": None,
    "at": None,
    "list": [],
    "map": [],
    "pairs": [],
    "in": None,
}
SHOWN = {
    "i8": -5, "i64": 2**60, "f": 1.5, "ok": False, "s": "é\n\"", "b": base64.b64encode(b"\x00\xff").decode(),
    "d": base64.b64encode((-1250).to_bytes(2, "big", signed=True)).decode(), "day": 20_484, "time": 3_723_000,
    "at": int(NOON.timestamp() * 1000), "list": ["a", None], "map": {"k": 1},
    "pairs": [[7, "seven"], [8, None]], "in": {"x": "y"},
}  # fmt: skip


def orders(count: int = 2) -> list[Records]:
    values = [FULL, BARE] * (count // 2)
    return [group(structs(SCHEMA, values), list(range(count)))]


def only(bucket: Bucket) -> tuple[str, bytes]:
    ((key, data),) = bucket.objects.items()
    return key.rpartition("/")[2], data


def test_structs_as_json_lines() -> None:
    """`json.decimal.format`; a default stands where a null is."""
    bucket, _ = written([orders()], {})
    full, bare = next(iter(bucket.lines().values()))
    assert full == SHOWN
    assert bare == {
        **SHOWN,
        **dict.fromkeys(("i64", "s", "at", "in")),
        "ok": True,
        "list": [],
        "map": {},
        "pairs": [],
    }
    bucket, _ = written([orders()], {"json.decimal.format": "NUMERIC"})
    assert b'"d":-12.50' in only(bucket)[1]


def test_texts_and_bytes_as_json_lines() -> None:
    """As Jackson writes them: text in quotation marks, bytes in base64, a day as its moment."""
    text = group(Column(pa.array(['a"b', "é"]), OPTIONAL_STRING), [0, 1])
    raw = group(Column(pa.array([b"\x00\xff"])), [2])
    day = group(Column(pa.array([dt.date(1970, 1, 2)]), date()), [3])
    number = group(Column(pa.array([Decimal("1.50")], decimal(2).arrow_type), decimal(2)), [4])
    listing = group(Column(pa.array([["x"]]), array(STRING)), [5])
    lines = b"".join(
        written([[one]], {})[0].objects[key]
        for one in (text, raw, day, number, listing)
        for key in written([[one]], {})[0].objects
    )
    assert lines == b'"a\\"b"\n"\xc3\xa9"\n"AP8="\n86400000\n1.50\n["x"]\n'


def test_changed_json_is_written_with_its_changes() -> None:
    (one,) = json_groups([{"a": 1, "b": {"c": [1, 2]}}, {"a": 2, "d": "x"}])
    assert one.value is not None and not isinstance(one.value, Column)
    changed = one.value.put({"a": None, "new": Column(pa.array([1.5, None]))})  # type: ignore[union-attr]
    bucket, _ = written([[group(changed, [0, 1])]], {})
    assert next(iter(bucket.lines().values())) == [{"b": {"c": [1, 2]}, "new": 1.5}, {"d": "x", "new": None}]


def test_changed_json_of_strange_texts_and_numbers() -> None:
    """Halves of surrogate pairs are question marks; whole numbers are longs."""
    found = []
    for one in json_groups([b'{"a": 123456789012345678901, "b": "x"}', b'{"b": "\\ud800"}']):
        changed = one.value.put({"new": Column(pa.array([1]))})  # type: ignore[union-attr]
        found += next(iter(written([[group(changed, [0])]], {})[0].lines().values()))
    longs = (123456789012345678901 + 2**63) % 2**64 - 2**63
    assert found == [{"a": longs, "b": "x", "new": 1}, {"b": "?", "new": 1}]


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "bzip2"])
def test_avro_files(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`avro.codec`: fastavro reads what was written, over blocks and chunks."""
    chunks = [orders(2000), [group(structs(SCHEMA, [FULL]), [0], first=2000)]]
    bucket, [taken, _] = written(chunks, {"format.class": AVRO, "avro.codec": codec, "flush.size": 10_000})
    assert not taken.failed
    name, data = only(bucket)
    assert name == "orders+3+0000000000.avro"
    reader = fastavro.reader(io.BytesIO(data))
    schema: Any = reader.writer_schema
    if codec == "snappy":
        monkeypatch.setitem(_read_py.BLOCK_READERS, "snappy", _snappy_block)
        reader = _read_py.reader(io.BytesIO(data))
    rows: list[Any] = list(reader)
    assert len(rows) == 2001 and rows[2] == rows[0] == rows[2000]
    want = FULL | {
        "map": {"k": 1},
        "pairs": [{"key": 7, "value": "seven"}, {"key": 8, "value": None}],
    }
    assert rows[0] == want
    assert rows[1] == want | {**BARE, "ok": True, "map": {}}
    assert schema["name"] == "com.example.Order"
    assert schema["connect.version"] == 3


def _snappy_block(decoder: Any) -> io.BytesIO:
    """fastavro unpacks snappy only with another library; Arrow does so here."""
    packed = decoder.read_fixed(decoder.read_long())
    size = _read_py.BinaryDecoder(io.BytesIO(packed)).read_long()
    size = size * 2 if size >= 0 else -size * 2 - 1  # a plain number there, and no zigzag
    body = pa.decompress(packed[:-4], size, "snappy", asbytes=True)
    assert zlib.crc32(body).to_bytes(4, "big") == packed[-4:]
    return io.BytesIO(body)


def test_avro_without_what_connect_knows() -> None:
    """`connect.meta.data`, `enhanced.avro.schema.support`, `schemas.cache.config`."""
    bare = {"connect.meta.data": False, "enhanced.avro.schema.support": False, "schemas.cache.config": 1}
    bucket, _ = written([orders()], {"format.class": AVRO, **bare})
    schema: Any = fastavro.reader(io.BytesIO(only(bucket)[1])).writer_schema
    assert not [name for name in schema if name.startswith("connect")]


def test_optional_keys_of_maps() -> None:
    """`allow.optional.map.keys`."""
    schema = struct(("m", map_of(OPTIONAL_STRING, STRING)))
    chunk = [group(structs(schema, [{"m": [("a", "b")]}]), [0])]
    for allowed, want in ((True, {"a": "b"}), (False, [{"key": "a", "value": "b"}])):
        bucket, _ = written([chunk], {"format.class": AVRO, "allow.optional.map.keys": allowed})
        assert list(fastavro.reader(io.BytesIO(only(bucket)[1]))) == [{"m": want}]


def test_avro_of_a_bare_value() -> None:
    chunk = [group(Column(pa.array(["a", "b"]), OPTIONAL_STRING), [0, 1])]
    bucket, _ = written([chunk], {"format.class": AVRO})
    assert list(fastavro.reader(io.BytesIO(only(bucket)[1]))) == ["a", "b"]


@pytest.mark.parametrize("codec, extension, shown", [
    ("none", ".parquet", "UNCOMPRESSED"),
    ("snappy", ".snappy.parquet", "SNAPPY"),
    ("gzip", ".gz.parquet", "GZIP"),
    ("zstd", ".zstd.parquet", "ZSTD"),
    ("brotli", ".br.parquet", "BROTLI"),
    ("lz4_raw", ".lz4raw.parquet", "LZ4"),
    ("lz4", ".lz4hadoop.parquet", "LZ4"),
])  # fmt: skip
def test_parquet_files(codec: str, extension: str, shown: str) -> None:
    """`parquet.codec` and the extension that goes with it."""
    bucket, [taken] = written([orders()], {"format.class": PARQUET, "parquet.codec": codec})
    assert not taken.failed
    name, data = only(bucket)
    assert name == f"orders+3+0000000000{extension}"
    file = pq.ParquetFile(io.BytesIO(data))
    assert file.metadata.row_group(0).column(0).compression == shown
    full, bare = file.read().to_pylist()
    want = FULL | {"pairs": [{"key": 7, "value": "seven"}, {"key": 8, "value": None}]}
    assert full == want
    assert bare == want | {**BARE, "ok": True}
    kinds = {one.name: one for one in file.schema_arrow}
    assert kinds["i8"].type == pa.int32() and not kinds["i8"].nullable
    assert kinds["i64"].nullable and kinds["d"].type == pa.decimal256(64, 2)
    assert json.loads(file.metadata.metadata[b"parquet.avro.schema"])["name"] == "Order"


def test_lzo_is_in_no_library() -> None:
    with pytest.raises(ConfigError, match=r"parquet\.codec=lzo"):
        layout_of({"format.class": PARQUET, "flush.size": 1, "parquet.codec": "lzo"})


@pytest.mark.parametrize("form", [AVRO, PARQUET])
def test_what_has_no_schema_is_a_dead_letter(form: str) -> None:
    bucket, [taken] = written([json_groups([{"a": 1}, "x"])], {"format.class": form})
    assert not bucket.objects and sorted(taken.failed) == [0, 1]


@pytest.mark.parametrize("form", [AVRO, PARQUET, JSON])
def test_a_required_value_that_is_missing_is_a_dead_letter(form: str) -> None:
    inner = struct(("n", array(struct(("x", STRING)))))
    values = [{"n": [{"x": "a"}]}, {"n": [{"x": "a"}, {"x": None}]}, {"n": []}]
    bucket, [taken] = written([[group(structs(inner, values), [0, 1, 2])]], {"format.class": form})
    assert list(taken.failed) == [1] and list(bucket.facts.values()) == [(0, 2, 2)]


def test_bytes_with_a_separator() -> None:
    """`format.bytearray.extension`, `format.bytearray.separator`; text is no bytes."""
    chunk = [
        group(Column(pa.array([b"a\n", b"b"]), BYTES), [0, 1]),
        group(Column(pa.array(["t"]), STRING), [2]),
    ]
    bucket, [taken] = written([chunk], {"format.class": RAW})
    assert only(bucket) == ("orders+3+0000000000.bin", b"a\n\nb\n") and list(taken.failed) == [2]
    settings = {
        "format.class": RAW,
        "format.bytearray.extension": ".txt",
        "format.bytearray.separator": " | ",
    }
    assert only(written([chunk], settings)[0]) == ("orders+3+0000000000.txt", b"a\n | b | ")
    name, data = only(written([chunk], settings | {"s3.compression.type": "gzip"})[0])
    assert (name, gzip.decompress(data)) == ("orders+3+0000000000.txt.gz", b"a\n | b | ")


def test_nulls_among_bytes_are_tombstones() -> None:
    """A converter of bytes does not look for them."""
    mixed = group(Column(pa.array([b"a", None, b"c"])), [0, 1, 2])
    bucket, [taken] = written([[mixed]], {"format.class": RAW, "behavior.on.null.values": "ignore"})
    assert only(bucket)[1] == b"a\nc\n" and list(taken.failed) == [1]


def test_gzip_goes_with_json_and_bytes_only() -> None:
    """`s3.compression.type`, also of keys, whose format is Avro unless told otherwise."""
    for settings in ({"format.class": AVRO}, {"format.class": PARQUET}, {"store.kafka.keys": True}):
        with pytest.raises(ConfigError) as error:
            layout_of({"format.class": JSON, "flush.size": 1, "s3.compression.type": "gzip", **settings})
        assert error.value.problems[0].key == "s3.compression.type"


def keyed(values: list[Any], keys: list[str | None], rows: list[int]) -> Records:
    (one,) = json_groups(values) or [None]
    key = None if None in keys else Column(pa.array(keys), OPTIONAL_STRING)
    headers = (
        Header("h", Column(pa.array([b"1"] * len(rows))), raw=True),
        Header("i", Column(pa.array([5] * len(rows)))),
    )
    assert one is not None
    return group(one.value, rows, key=key, headers=headers)


@pytest.mark.parametrize("form, extension", [(AVRO, ".avro"), (PARQUET, ".snappy.parquet"), (JSON, ".json")])
def test_keys_and_headers_have_objects_of_their_own(form: str, extension: str) -> None:
    """`store.kafka.keys`, `keys.format.class`, `store.kafka.headers`, `headers.format.class`."""
    settings = {
        "store.kafka.keys": True,
        "store.kafka.headers": True,
        "keys.format.class": form,
        "headers.format.class": form,
    }
    bucket, [taken] = written([[keyed([{"a": 1}, {"a": 2}], ["k1", "k2"], [0, 1])]], settings)
    assert not taken.failed
    name = "topics/orders/partition=3/orders+3+0000000000"
    assert list(bucket.objects) == [f"{name}.json", f"{name}.keys{extension}", f"{name}.headers{extension}"]
    header = [{"key": "h", "value": "1"}, {"key": "i", "value": "5"}]
    keys, headers = (read(bucket.objects[f"{name}.{one}{extension}"], form) for one in ("keys", "headers"))
    assert keys == ([{"key": "k1"}, {"key": "k2"}] if form == PARQUET else ["k1", "k2"])
    assert headers == ([header] if form == AVRO else [{"headers": header}]) * 2


def read(data: bytes, form: str) -> list[Any]:
    if form == AVRO:
        return list(fastavro.reader(io.BytesIO(data)))
    if form == PARQUET:
        return pq.read_table(io.BytesIO(data)).to_pylist()
    return [json.loads(line) for line in data.splitlines()]


def test_no_key_or_no_headers_is_a_dead_letter() -> None:
    without = [keyed([{"a": 1}], [None], [0])]
    assert "Key cannot be null" in written([without], {"store.kafka.keys": True})[1][0].failed[0].reason
    bare = json_groups([{"a": 1}])
    assert "Headers" in written([bare], {"store.kafka.headers": True})[1][0].failed[0].reason


def test_tombstones_are_written_as_their_keys() -> None:
    """`behavior.on.null.values=write`, `tombstone.encoded.partition`."""
    key = Column(pa.array(["k"]), OPTIONAL_STRING)
    chunk = [group(json_groups([{"a": 1}])[0].value, [0], key=key), group(None, [1], key=key)]
    settings = {"behavior.on.null.values": "write", "store.kafka.keys": True, "keys.format.class": JSON}
    bucket, [taken] = written([chunk], settings | {"tombstone.encoded.partition": "gone"})
    assert not taken.failed
    assert bucket.objects == {
        "topics/orders/partition=3/orders+3+0000000000.json": b'{"a": 1}\n',
        "topics/orders/partition=3/orders+3+0000000000.keys.json": b'"k"\n',
        "topics/orders/gone/orders+3+0000000001.keys.json": b'"k"\n',
    }
    with pytest.raises(ConfigError, match=r"store\.kafka\.keys"):
        layout_of({"format.class": JSON, "flush.size": 1, "behavior.on.null.values": "write"})


V1 = struct(("a", STRING), ("gone", OPTIONAL_STRING), name="S", version=1)
V2 = struct(("a", STRING), ("new", ConnectSchema(Kind.INT32, optional=True, default=7)), name="S", version=2)


@pytest.mark.parametrize("mode, objects", [
    ("NONE", [[1], [2], [1]]),
    ("rubbish", [[1], [2], [1]]),
    ("BACKWARD", [[1], [2, 1]]),
    ("FULL", [[1], [2, 1]]),
    ("FORWARD", [[1, 2, 1]]),
])  # fmt: skip
def test_schemas_that_may_share_an_object(mode: str, objects: list[list[int]]) -> None:
    """`schema.compatibility`: older records are projected up, newer ones down."""
    old, new = {"a": "x", "gone": "g"}, {"a": "y", "new": 1}
    chunk = [group(structs(V1, [old, old]), [0, 2]), group(structs(V2, [new]), [1])]
    bucket, [taken] = written([chunk], {"schema.compatibility": mode})
    assert not taken.failed
    found = list(bucket.lines().values())
    assert [len(lines) for lines in found] == [len(one) for one in objects]
    for lines, versions in zip(found, objects, strict=True):
        want = V1 if versions[0] == 1 else V2
        assert all(list(line) == [field.name for field in want.fields] for line in lines)
    if mode == "BACKWARD":
        assert found[1] == [{"a": "y", "new": 1}, {"a": "x", "new": 7}]


def test_compatibility_needs_versions() -> None:
    chunk = [group(structs(struct(("a", STRING)), [{"a": "x"}]), [0])]
    _, [taken] = written([chunk], {"schema.compatibility": "BACKWARD"})
    assert taken.failed[0].reason == "Schema version required for BACKWARD compatibility"


@pytest.mark.parametrize(
    "empty", [struct(), struct(("in", struct(optional=True))), struct(("l", array(struct())))]
)
def test_parquet_has_no_structs_without_fields(empty: ConnectSchema) -> None:
    """A table without columns has no rows either: the record would be nowhere."""
    values = pa.array([{}, {}], empty.arrow_type)
    unfit = ParquetFiles().unfit(Column(values, empty))
    assert list(unfit) == [0, 1] and "without fields" in unfit[0].reason
