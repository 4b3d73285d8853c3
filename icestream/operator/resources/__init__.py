"""Resources as users write them, read and checked: from maps to facts. No I/O."""
