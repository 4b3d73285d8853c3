"""What is in the objects: JSON Lines, Avro, Parquet, bytes."""
