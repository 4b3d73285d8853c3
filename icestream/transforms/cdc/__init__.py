"""Transforms for events of change data capture: Debezium's, those of MongoDB too, and those of AWS DMS."""
