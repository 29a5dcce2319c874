"""The statements of ``db.sql``: read, checked against the catalog, run."""
