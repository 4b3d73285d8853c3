"""Archives of container images: read them, push them to a registry, without a container engine."""
