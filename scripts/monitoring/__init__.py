"""What `monitoring/` is made from: alerts and Grafana dashboards. Written by `make monitoring`."""
