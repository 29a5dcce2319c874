"""everview.."""
