"""everview.algebra."""
