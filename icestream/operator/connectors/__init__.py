"""KafkaConnector resources, carried out through the REST API of workers. The operator's loop calls this."""
