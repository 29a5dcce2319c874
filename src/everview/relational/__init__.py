"""The algebra of queries over bags: types, expressions, nodes, their meaning, and rewrites; the waist below Spark."""
