"""What can be added, negated and multiplied: Z-sets, and rings for the payloads of views. Knows nothing of SQL.

The engine has kernels of its own for counts, exact sums and floats. It knows other rings through ``ring`` (the protocol),
``registry`` (those that users have registered) and ``laws`` (which tries them). ``integers``, ``floats``, ``product`` and
``finite_algebra`` are rings to register, or to build others of: docs/rings.md shows how.
"""
