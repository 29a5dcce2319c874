"""What can be added and negated: Z-sets, bags with integer weights. Knows nothing of SQL."""
