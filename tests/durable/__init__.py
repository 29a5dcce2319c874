"""Databases on disk: what a crash, a broken file, another process or another thread may do to them."""
