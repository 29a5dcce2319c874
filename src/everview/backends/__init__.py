"""everview.backends."""
