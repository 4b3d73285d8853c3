"""The JSON engine: text to records, text to rows of a table, records to text. Used by converters, rows and
transforms.

The way of a value without a schema:
1. `schemaless`: msgspec checks each value of a chunk, and reads the fields that transforms asked for before.
2. `records.values`: transforms read and replace single fields; what they do not touch stays text.
3. `table_rows`: arrow-rs decodes the text of the chunk into the types of the table, all rows at once.
4. `bulk`: finds the few values that are in the way of the others; `coerce` casts those one by one, by the
   rules of the Java sink, and says what is wrong with them.
5. `rows.schema_drift`: told of the values that have more keys than were decoded (`bulk.keys_agree`).

With a schema: `envelope` parts schema and payload, `schemas` reads the schema, `with_schema` decodes all
payloads of one schema by the same `bulk`, and `connect_values` those that are in the way, one by one.

`one_value` reads what strict readers refuse and Jackson takes; `types` makes the msgspec types; `encode`
writes JSON as Jackson does.
"""
