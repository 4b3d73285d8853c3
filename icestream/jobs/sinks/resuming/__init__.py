"""Where a job of a sink goes on."""
