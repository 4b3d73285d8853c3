"""Records between a converter and a sink: schemas, columns, JSON text that nobody has decoded yet."""
