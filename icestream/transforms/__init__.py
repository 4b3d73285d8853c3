"""Single message transforms and predicates: from alike records to alike records, on columns."""
