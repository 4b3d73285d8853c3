"""The Iceberg sink: stage Parquet files, commit them with their offsets."""
