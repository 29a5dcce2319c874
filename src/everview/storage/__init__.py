"""Databases on disk: the log of transactions and definitions, checkpoints of tables, and what finds out that a file is broken.

Nothing here knows an engine. A folder holds ``everview.sqlite`` (the log, in WAL mode, and which checkpoint is in force),
``checkpoints/`` (Arrow files with checksums) and ``_lock``. Nothing in it is ever executed: no pickle, no stored code.
"""
