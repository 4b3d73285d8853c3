"""The jobs of sinks: from records of topics to commits of targets."""
