"""Engines behind the one protocol of ``base.py``: tables and views in, atomic transactions, reads out."""
