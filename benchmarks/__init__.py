"""Benchmark suites: each module with a ``run(*, quick)`` is one that ``everview bench`` finds by its name."""
