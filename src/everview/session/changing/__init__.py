"""Changing what exists: tables made from rows, views replaced, rows in sequence, assertions that sort rows out."""
