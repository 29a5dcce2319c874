"""The query corpus: SQL files, and the tables they run on (see `data.py`)."""
