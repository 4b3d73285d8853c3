"""A Kafka broker and realistic load on one machine: for the demo, the tests and the benchmarks."""
