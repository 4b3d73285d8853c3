"""The coordinator of Java's Iceberg workers: they write files, it commits them. docs/job-manager.md."""
