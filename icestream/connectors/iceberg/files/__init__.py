"""Data files: rows clustered by partition, written as Parquet, with statistics."""
