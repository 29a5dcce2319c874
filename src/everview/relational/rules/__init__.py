"""everview.relational.rules."""
