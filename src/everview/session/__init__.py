"""The public interface: ``connect`` and the ``Database`` it opens, and what users hold of it.

Its parts (``rows/``: what users hand in, ``sql/``: statements, ``feeds/``: sources and sinks outside) speak to the database
through ``core.Core`` only.
"""
