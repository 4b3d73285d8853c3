"""The Delta sink: tables in the format of Delta Lake, on local disks and S3."""
