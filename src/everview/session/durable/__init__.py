"""Databases of the embedded engine that live on disk: what ``storage/`` keeps, and the engine that is filled from it."""
