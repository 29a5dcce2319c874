"""everview.backends.reference."""
