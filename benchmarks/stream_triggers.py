"""What Spark reports of the micro-batches of a stream, as the parts that their time went to."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.timing import Seconds


@dataclass(frozen=True, slots=True)
class Triggers:
    """The seconds of each micro-batch: the trigger as a whole, its parts, and the transaction alone, on the mean."""

    whole: Seconds
    sink: Seconds
    transaction: float

    def parts(self) -> dict[str, float]:
        """The mean seconds of each part.

        >>> import numpy as np
        >>> Triggers(np.array([0.5, 0.7]), np.array([0.25, 0.35]), 0.1).parts()
        {'bookkeeping': 0.3, 'read_and_transfer': 0.2, 'transaction': 0.1}
        """
        whole, sink = float(self.whole.mean()), float(self.sink.mean())
        parts = {"bookkeeping": whole - sink, "read_and_transfer": sink - self.transaction}
        return {name: round(seconds, 9) for name, seconds in {**parts, "transaction": self.transaction}.items()}
