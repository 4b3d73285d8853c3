"""Where objects are kept: S3 and what speaks its protocol, or a folder."""
