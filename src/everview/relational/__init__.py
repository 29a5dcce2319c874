"""everview.relational."""
