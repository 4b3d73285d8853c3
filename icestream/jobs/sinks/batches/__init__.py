"""A batch of a sink, from its plan to what is told of it."""
