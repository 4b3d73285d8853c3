"""What a worker counts of itself, for Prometheus."""
