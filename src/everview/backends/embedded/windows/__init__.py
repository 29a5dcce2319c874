"""Window functions over whole columns: what ``relational.definitions.windows`` defines row by row, in NumPy and kernels.

The rows of all touched partitions are sorted once (``sorted_rows``). A view of them with weights (``partitions``) knows where
every row's partition and peers begin and end, ``frames`` where its frame does; each function is a computation over these
positions for all rows of all partitions at once. Contract: the values are a function of the partition's bag alone, to the last
bit, whatever else is in the batch: the operator takes back what it once put out by computing it again.
"""

from everview.backends.embedded.windows.functions import WindowFunctions
from everview.backends.embedded.windows.partitions import Partitions
from everview.backends.embedded.windows.sorted_rows import RowOrder, SortedRows

__all__ = ["Partitions", "RowOrder", "SortedRows", "WindowFunctions"]
