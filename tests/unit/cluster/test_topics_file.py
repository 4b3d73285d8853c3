"""A topics file: what its entries mean, and what is refused with one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.api.errors import ConfigError
from icestream.api.topics_file import TopicEntry, TopicsFileRules
from icestream.cluster.configs.properties import ConnectorFile
from icestream.cluster.topics_file import read_topics_file

WHOLE = """
server:
  port: 8081
connector:
  workers: 3
  topics:
    user-events:
      topic-name: users
      schema-file: schemas/user.json
      destination:
        bucket: production-data-lake
        prefix: events/user
        table-name: user_events
        partition-columns: ["year", "month", "day"]
      processing:
        batch-size: 2000
        flush-interval: 30
        max-retries: 5
    orders:
      destination: {bucket: 4711, partition-columns: "country, city"}
    nothing:
"""


class Recorded:
    """Rules that keep the entries they are given."""

    def __init__(self) -> None:
        self.entries: list[TopicEntry] = []
        self.rules = TopicsFileRules({}, self._connector)

    def _connector(self, entry: TopicEntry) -> dict[str, str]:
        self.entries.append(entry)
        return {"topics": entry.topic}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "user.json").write_text('{"type": "object"}')
    return tmp_path


def read(folder: Path, text: str | bytes) -> tuple[list[ConnectorFile], list[TopicEntry]]:
    file = folder / "application.yml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    recorded = Recorded()
    return read_topics_file(file, recorded.rules), recorded.entries


def test_a_connector_for_each_topic(folder: Path) -> None:
    connectors, entries = read(folder, WHOLE)
    assert entries == [
        TopicEntry(
            "user-events",
            "users",
            '{"type": "object"}',
            "production-data-lake",
            "events/user",
            "user_events",
            ("year", "month", "day"),
            2000,
            30,
            5,
        ),
        TopicEntry("orders", "orders", bucket="4711", partition_columns=("country", "city")),
        TopicEntry("nothing", "nothing"),
    ]
    assert connectors[0] == ConnectorFile("user-events", {"name": "user-events", "topics": "users"})


def test_keys_may_be_written_as_spring_takes_them(folder: Path) -> None:
    text = "connector: {topics: {a: {topicName: b, processing: {batchSize: 7, flush_interval: 9}}}}"
    assert read(folder, text)[1] == [TopicEntry("a", "b", batch_size=7, flush_seconds=9)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "a: {destination: {buckett: x}}",
            "a.destination.buckett: nobody knows this key; there are bucket,",
        ),
        ("a: {sink: x}", "a.sink: nobody knows this key; there are topic-name, schema-file, destination, "),
        ("a: {destination: x}", "a.destination: it is no section with keys"),
        ("a: [1]", "connector.topics.a: it is no section with keys"),
        (
            "a: {processing: {batch-size: many}}",
            "a.processing.batch-size: it is no whole number",
        ),
        ("a: {processing: {batch-size: 0}}", "a.processing.batch-size: it is no whole number of at least 1"),
        ("a: {processing: {max-retries: true}}", "a.processing.max-retries: it is no whole number"),
        ("a: {processing: {flush-interval: 1.5}}", "a.processing.flush-interval: it is no whole number"),
        ("a: {destination: {bucket: [x]}}", "a.destination.bucket: it is no text"),
        (
            "a: {destination: {partition-columns: [1]}}",
            "a.destination.partition-columns: it is no list",
        ),
        ("a: {schema-file: schemas/none.json}", "'schemas/none.json' (looked for in"),
        ("a: {schema-file: schemas}", "cannot be read"),
        ("a: {schema-file: /dev/zero}", "it is not a regular file"),
    ],
)
def test_what_is_wrong_with_an_entry_is_told_by_its_key(folder: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as told:
        read(folder, "connector: {topics: {" + text + "}}")
    assert problem in str(told.value)


def test_all_problems_are_told_at_once(folder: Path) -> None:
    with pytest.raises(ConfigError) as told:
        read(folder, "connector: {topics: {a: {x: 1, processing: {batch-size: 0}}, b: {y: 1}}}")
    assert len(told.value.problems) == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it has no 'connector.topics'"),
        ("- a", "it has no 'connector.topics'"),
        ("connector: {topics: []}", "it has no 'connector.topics'"),
        ("connector: {topics: {1: {}, '1': {}}}", "is there twice"),
        ("connector: {topics: {a: {}, a: {}}}", "line 1: the key 'a' is there twice"),
        ("connector: {topics: {[a]: {}}}", "line 1: a key is no text"),
        ("connector: !!python/object/apply:os.system [id]", "line 1: could not determine a constructor"),
        ("a: 1\n---\nb: 2", "but found another document"),
        ("connector: {topics: {a: ", "line 1"),
        ("a: 'b", "line 1"),
        (b"\xff\xfe\x00", "it is not UTF-8"),
        ("a: \x00", "it is not plain YAML"),
        ("[" * 100_000, "nested deeper than 50 levels"),
        ("a: 2026-99-99", "it is not plain YAML"),
        (f"a: {'1' * 5000}", "it is not plain YAML"),
        ("x" * 2_000_000, "it has more than"),
        ("connector: {topics: {" + ",".join(f"t{n}: {{}}" for n in range(1001)) + "}}", "1000 are the most"),
    ],
)
def test_a_file_that_is_none_is_refused_with_one_sentence(
    folder: Path, text: str | bytes, problem: str
) -> None:
    with pytest.raises(ConfigError) as told:
        read(folder, text)
    assert problem in str(told.value)
    assert len(told.value.problems) == 1
    assert "\n" not in str(told.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_topics_file(tmp_path / "none.yml", Recorded().rules)
    with pytest.raises(ConfigError, match="not a regular file"):
        read_topics_file(Path("/dev/zero"), Recorded().rules)


def test_a_file_that_grows_when_it_is_read_ends_soon(folder: Path) -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 40)]
    lines += ["connector: {topics: {t: {destination: {bucket: *a39}}}}"]
    with pytest.raises(ConfigError, match="bucket: it is no text"):
        read(folder, "\n".join(lines))
