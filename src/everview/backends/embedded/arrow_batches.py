"""Batches that a table takes as they are: columns without NULL, text that is text, and the table's own schema, in three calls.

Python's objects for the columns of a batch take longer to make than a thousand rows take to look at. So a batch is exported
through Arrow's C data interface, a kernel looks at it, and it is imported with the schema that it should have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from everview.backends.embedded.state import arrow_kernels as kernels
from everview.backends.embedded.state.kernel_cache import IS_CHECKED
from everview.backends.embedded.state.memory import address_of


class BatchCheck:
    """What batches of a table are looked at for.

    Args:
        schema: The table's.
        required: The positions of columns that have no NULL.
        texts: The positions of strings.
    """

    def __init__(self, schema: pa.Schema, required: Sequence[int], texts: Sequence[int]) -> None:
        self._schema = schema
        self._required = np.array(required, dtype=np.int64)
        self._texts = np.array(texts, dtype=np.int64)
        self._export = np.zeros(kernels.EXPORTED_WORDS, dtype=np.int64)
        self._address = address_of(self._export)

    def passed(self, batch: pa.RecordBatch, *, is_exact: bool) -> pa.RecordBatch | None:
        """The batch with the table's schema, which it has but for where NULL may be; None where somebody has to look closer.

        That is where a column has NULLs that may have none, or bytes beyond ASCII, which are most likely text.
        ``is_exact`` is whether it has that schema.
        """
        count = batch.num_rows
        if IS_CHECKED or not count:  # in checked mode buffers have to be known, and one that is exported is not
            return None
        batch._export_to_c(self._address)
        if not kernels.is_surely_right(self._address, self._required, self._texts, count, not is_exact):
            return None
        return batch if is_exact else pa.RecordBatch._import_from_c(self._address, self._schema)
