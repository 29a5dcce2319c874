"""``make soak``: generated databases, queries and streams for as long as one likes, every answer compared; see docs/soak.md."""
