"""What aggregates, windows and ORDER BY mean, in plain Python over rows: the definition that every engine is tested against."""
