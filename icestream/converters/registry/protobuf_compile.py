"""The .proto texts of a registry as descriptors, by protoc; called once per schema."""

from __future__ import annotations

import base64
import binascii
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from icestream.api.errors import PreconditionError
from icestream.converters.registry.client import Reference, UnusableSchema

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

_MAIN: Final = "icestream_main.proto"
_TIMEOUT_S: Final = 60
_KNOWN: Final = {
    "confluent/meta.proto": """
        syntax = "proto3"; package confluent;
        import "google/protobuf/descriptor.proto";
        message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
        extend google.protobuf.FileOptions { Meta file_meta = 1088; }
        extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
        extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
        extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
        extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }""",
    "confluent/type/decimal.proto": """
        syntax = "proto3"; package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }""",
    "google/type/date.proto": """
        syntax = "proto3"; package google.type;
        message Date { int32 year = 1; int32 month = 2; int32 day = 3; }""",
    "google/type/timeofday.proto": """
        syntax = "proto3"; package google.type;
        message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }""",
}
"""Files that schemas import without a reference; a registry knows them, too."""


@dataclass(frozen=True)
class Compiled:
    """A schema's file with all that it imports."""

    pool: Any
    file: Any

    def message(self, indexes: Sequence[int]) -> Descriptor:
        """The message at a path of positions, as messages name it. Raises UnusableSchema."""
        nodes, name = self.file.message_type, self.file.package
        for index in indexes:
            if not 0 <= index < len(nodes):
                raise UnusableSchema(f"Invalid message indexes: {list(indexes)}")
            name = f"{name}.{nodes[index].name}" if name else nodes[index].name
            nodes = nodes[index].nested_type
        found: Descriptor = self.pool.FindMessageTypeByName(name)
        return found


def compiled(text: str, references: Sequence[Reference]) -> Compiled:
    """Raises UnusableSchema with protoc's words."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool

    files = FileDescriptorSet.FromString(_run_protoc(text, references))
    pool = DescriptorPool()
    try:
        for file in files.file:
            pool.Add(file)  # those that others import come first
    except TypeError as error:
        raise UnusableSchema(f"the Protobuf schema does not do: {error}") from None
    return Compiled(pool, files.file[-1])


def require_protoc() -> None:
    """Raises PreconditionError."""
    if find_spec("grpc_tools") is None:
        raise PreconditionError("Protobuf schemas need protoc; run `pip install 'icestream[protobuf]'`")


def _run_protoc(text: str, references: Sequence[Reference]) -> bytes:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    spec = find_spec("grpc_tools")
    assert spec is not None and spec.submodule_search_locations is not None
    shipped = Path(spec.submodule_search_locations[0]) / "_proto"
    with tempfile.TemporaryDirectory(prefix="icestream-proto-") as folder:
        sources = Path(folder) / "sources"
        sources.mkdir()
        ready = FileDescriptorSet()
        for name, content in {**_KNOWN, **{one.name: one.text for one in references}, _MAIN: text}.items():
            if (descriptor := _descriptor(content)) is not None:
                descriptor.name = name
                ready.file.append(descriptor)
            else:
                _write(sources, name, content)
        given, target = Path(folder) / "given", Path(folder) / "descriptors"
        given.write_bytes(ready.SerializeToString())
        command = [
            *(sys.executable, "-m", "grpc_tools.protoc", f"-I{sources}", f"-I{shipped}"),
            *(f"--descriptor_set_in={given}", "--include_imports", f"--descriptor_set_out={target}", _MAIN),
        ]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S)
        if ran.returncode != 0:
            said = " ".join(ran.stderr.split())
            raise UnusableSchema(f"the Protobuf schema does not compile: {said}")
        return target.read_bytes()


def _descriptor(content: str) -> Any:
    """The descriptor that some clients register in place of the text, in base64; None if it is text."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        return FileDescriptorProto.FromString(base64.b64decode(content, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None


def _write(folder: Path, name: str, content: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise UnusableSchema(f"the Protobuf schema imports {name}, which is no file of a registry")
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)


def field_parameters(compiled: Compiled, options: Any) -> dict[str, str]:
    """`confluent.field_meta.params` of a field's options."""
    from google.protobuf.message_factory import GetMessageClass

    try:
        extension = compiled.pool.FindExtensionByName("confluent.field_meta")
    except KeyError:
        return {}
    # Read anew: to the runtime the extension is unknown, unless somebody else has taught it.
    kind = GetMessageClass(extension.containing_type)
    known = kind.FromString(options.SerializeToString())
    return dict(known.Extensions[extension].params)
