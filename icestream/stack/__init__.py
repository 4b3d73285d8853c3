"""The MinIO stack on one machine: storage, Kafka, a worker and a query engine, as processes or by compose."""
