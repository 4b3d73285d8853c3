"""A package: its browser ends with its last test, and with it the event loop of Playwright."""
