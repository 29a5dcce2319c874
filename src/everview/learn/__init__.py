"""Models over joins, kept fresh under updates: what they read is maintained, so that no refit touches a row."""
