"""A package: its browser ends with its last test, and so does the event loop that Playwright leaves running."""
