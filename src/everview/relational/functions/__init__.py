"""The scalar functions of Spark SQL that everview computes: one declaration each, grouped by what they work on."""
