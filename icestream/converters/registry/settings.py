"""Settings of the registry's converters: `converters.catalog` lists them, for validation and for REST."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icestream.api.config import REQUIRED, Setting, Type

AVRO: Final = "io.confluent.connect.avro.AvroConverter"
PROTOBUF: Final = "io.confluent.connect.protobuf.ProtobufConverter"
JSON_SCHEMA: Final = "io.confluent.connect.json.JsonSchemaConverter"
_TOPIC_NAMES: Final = "io.confluent.kafka.serializers.subject.TopicNameStrategy"

_FEW: Final = "a task keeps all schemas that it meets"
_TRIED_AGAIN: Final = "while the registry is silent, the batch is tried again"
WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "max.schemas.per.subject": _FEW,
    "schemas.cache.config": _FEW,
    "max.retries": _TRIED_AGAIN,
    "retries.wait.ms": _TRIED_AGAIN,
    "retries.max.wait.ms": _TRIED_AGAIN,
}
"""Keys that are known, and why they change nothing."""

REGISTRY: Final = (
    Setting(
        "schema.registry.url",
        Type.LIST,
        REQUIRED,
        "Addresses of the Schema Registry, such as http://host:8081; if one is silent, the next is asked.",
        importance="HIGH",
    ),
    Setting("basic.auth.credentials.source", Type.STRING, "URL", "URL or USER_INFO."),
    Setting("basic.auth.user.info", Type.PASSWORD, "", "user:password, for USER_INFO."),
    Setting("schema.registry.basic.auth.user.info", Type.PASSWORD, "", "Old name of basic.auth.user.info."),
    Setting("bearer.auth.credentials.source", Type.STRING, None, "STATIC_TOKEN."),
    Setting("bearer.auth.token", Type.PASSWORD, "", "The token, for STATIC_TOKEN."),
    Setting("http.connect.timeout.ms", Type.INT, 10_000, "How long to wait for a connection.", at_least=1),
    Setting("http.read.timeout.ms", Type.INT, 30_000, "How long to wait for an answer.", at_least=1),
    *(
        Setting(name, Type.INT, None, f"Has no effect: {why}.", importance="LOW")
        for name, why in WITHOUT_EFFECT.items()
    ),
    Setting("auto.register.schemas", Type.BOOLEAN, True, "Whether schemas that are written are registered."),
    Setting(
        "use.latest.version",
        Type.BOOLEAN,
        False,
        "Whether to write with the newest schema of the subject.",
        importance="LOW",
    ),
    Setting("key.subject.name.strategy", Type.CLASS, _TOPIC_NAMES, "How the subject of a key is named."),
    Setting("value.subject.name.strategy", Type.CLASS, _TOPIC_NAMES, "How the subject of a value is named."),
    Setting(
        "schema.registry.ssl.truststore.location", Type.STRING, None, "The trust store.", importance="LOW"
    ),
    Setting(
        "schema.registry.ssl.truststore.password", Type.PASSWORD, None, "Its password.", importance="LOW"
    ),
    Setting(
        "schema.registry.ssl.truststore.type", Type.STRING, "JKS", "JKS, PKCS12 or PEM.", importance="LOW"
    ),
    Setting("schema.registry.ssl.keystore.location", Type.STRING, None, "The key store.", importance="LOW"),
    Setting("schema.registry.ssl.keystore.password", Type.PASSWORD, None, "Its password.", importance="LOW"),
    Setting("schema.registry.ssl.keystore.type", Type.STRING, "JKS", "JKS, PKCS12 or PEM.", importance="LOW"),
    Setting("schema.registry.ssl.key.password", Type.PASSWORD, None, "Of the key.", importance="LOW"),
    Setting(
        "schema.registry.ssl.endpoint.identification.algorithm",
        Type.STRING,
        "https",
        "Empty: the host's name is not compared with its certificate.",
        importance="LOW",
    ),
)
AVRO_SETTINGS: Final = (
    *REGISTRY,
    Setting("enhanced.avro.schema.support", Type.BOOLEAN, False, "Full names for the branches of a union."),
    Setting(
        "connect.meta.data", Type.BOOLEAN, True, "Whether docs and parameters are kept.", importance="LOW"
    ),
    Setting(
        "flatten.singleton.unions",
        Type.BOOLEAN,
        True,
        "Whether a union of one branch is that branch.",
        importance="LOW",
    ),
    Setting(
        "avro.fail.on.trailing.data",
        Type.BOOLEAN,
        False,
        "Whether bytes behind a datum are an error.",
        importance="LOW",
    ),
)
JSON_SCHEMA_SETTINGS: Final = (
    *REGISTRY,
    Setting(
        "use.optional.for.nonrequired",
        Type.BOOLEAN,
        False,
        "Whether properties that are not required are optional.",
    ),
    Setting("flatten.singleton.unions", Type.BOOLEAN, True, "Whether a oneOf of one schema is that schema."),
    Setting(
        "object.additional.properties",
        Type.BOOLEAN,
        True,
        "Whether schemas that are written allow further properties.",
    ),
    Setting(
        "decimal.format", Type.STRING, "BASE64", "How decimals are written.", choices=("BASE64", "NUMERIC")
    ),
)
PROTOBUF_SETTINGS: Final = (
    *REGISTRY,
    Setting("enhanced.protobuf.schema.support", Type.BOOLEAN, False, "Full names for messages."),
    Setting("int.for.enums", Type.BOOLEAN, False, "Whether enums are numbers."),
    Setting("optional.for.nullables", Type.BOOLEAN, False, "Whether only `optional` fields are optional."),
    Setting("optional.for.proto2", Type.BOOLEAN, True, "The same for proto2."),
    Setting("wrapper.for.nullables", Type.BOOLEAN, False, "Whether wrappers are the values in them."),
    Setting("wrapper.for.raw.primitives", Type.BOOLEAN, True, "The same for a message that is a wrapper."),
    Setting("generate.struct.for.nulls", Type.BOOLEAN, False, "Whether missing messages are of defaults."),
    Setting("generate.index.for.unions", Type.BOOLEAN, True, "Whether oneofs have a number in their name."),
    Setting("flatten.unions", Type.BOOLEAN, False, "Whether members of a oneof are fields of the message."),
)
SETTINGS: Final[Mapping[str, tuple[Setting, ...]]] = {
    AVRO: AVRO_SETTINGS,
    PROTOBUF: PROTOBUF_SETTINGS,
    JSON_SCHEMA: JSON_SCHEMA_SETTINGS,
}
