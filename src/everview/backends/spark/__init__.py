"""The Spark backend: views maintained as Delta tables, evaluated by Spark SQL, small deltas at the driver."""
