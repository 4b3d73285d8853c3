"""Which folder of its topic each record goes to."""
