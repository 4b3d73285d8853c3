"""The Kubernetes operator: clusters and connectors from resources. `icestream operator` runs it."""
