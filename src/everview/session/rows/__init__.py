"""Rows that users hand in, in whatever form, as checked changes for a backend."""
