"""What comes in from outside and goes out: Spark streams, tables of Delta Lake, publications."""
