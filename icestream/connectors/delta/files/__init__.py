"""Data files of Delta tables: partition values, statistics, Parquet. Used inside of tasks."""
