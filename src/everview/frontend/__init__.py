"""everview.frontend."""
