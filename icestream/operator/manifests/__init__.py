"""From the facts of a resource to the objects that Kubernetes shall have. No I/O."""
