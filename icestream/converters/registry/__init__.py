"""Converters that need a Schema Registry: Avro, Protobuf and JSON Schema in Confluent's wire format."""
