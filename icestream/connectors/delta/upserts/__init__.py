"""Changes of rows: staged by tasks, merged by the manager, committed with the checkpoint."""
