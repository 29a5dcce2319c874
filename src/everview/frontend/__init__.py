"""From Spark SQL to the relational algebra, through Catalyst; the only package that talks to the JVM."""
