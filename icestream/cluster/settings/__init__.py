"""What the config and the environment of a worker say."""
