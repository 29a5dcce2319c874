"""What can be added, negated and multiplied: Z-sets, and rings for the payloads of views. Knows nothing of SQL."""
