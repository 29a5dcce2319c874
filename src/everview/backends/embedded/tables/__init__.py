"""The base tables of the embedded engine: their rows, the index that makes deletes strict, and one transaction's effect.

- ``stored_table``: the table as the engine sees it: ``prepare``, ``commit``, ``rollback``, ``content``.
- ``keyed_rows``, ``bag_rows``, ``passing_rows``: how rows are kept with a primary key, without one, and not at all.
- ``row_log``: Arrow batches as they came, rows by number of arrival.
- ``transaction_rows``: the rows of one transaction, and when two of them are equal.
"""

from everview.backends.embedded.tables.stored_table import StoredTable, TableBytes
from everview.backends.embedded.tables.transaction_rows import TableDelta

__all__ = ["StoredTable", "TableBytes", "TableDelta"]
