"""What a job leaves in the log of a Delta table: its checkpoint, and transactions."""
