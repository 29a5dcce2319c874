"""Every exception everview raises on purpose.

::

    EverviewError
    ├── InvalidQuery           Spark could not parse or resolve the query
    ├── UnsupportedQuery       Spark understands it, everview (or this backend) cannot maintain it
    ├── UnsupportedOperation   a call this backend does not have
    ├── InvalidChange          rows that a table cannot take
    │   └── EvaluationError    rows on which a view's arithmetic fails, as it would in Spark's ANSI mode
    ├── AssertionViolated      a transaction that would make an assertion non-empty
    ├── UnknownName            no such table, view or column
    ├── AlreadyExists          the name is taken
    ├── DependencyError        dropping what others need: views over it, streams into it, publications of it
    ├── DatabaseLocked         the database is open already, here or in another process
    ├── CorruptDatabase        the files on disk are not what was written
    ├── StorageFailed          the disk did not take what was to be written: it is full, or broken
    ├── OutOfMemory            a call that needs more memory than there is
    ├── ViewSuspended          reading a view that has no answer, because its arithmetic fails on rows that are there
    ├── VerificationFailed     a view differs from Spark's recomputation
    └── InternalError          our own mistake

Contract: an exception that reaches a user says what was wrong, with the value, and where it helps a ``Hint:`` says what
to do. Each class has a stable ``code``; a rejected call has changed nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class EverviewError(Exception):
    """The root of the tree. ``message`` is the bare sentence, ``hint`` the advice, ``str()`` both.

    ``statement`` is the SQL statement that failed, where ``db.sql`` ran it.
    """

    code = "EVERVIEW_ERROR"
    statement: str | None = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message} Hint: {hint}" if hint else message)


class InvalidQuery(EverviewError):
    """Spark could not parse or resolve the query."""

    code = "INVALID_QUERY"


class UnsupportedQuery(EverviewError):
    """A query that Spark understands and everview, or the backend in use, cannot maintain.

    Raised when the view is created, never later. ``operator`` names what stood in the way.
    """

    code = "UNSUPPORTED_QUERY"

    def __init__(self, message: str, *, operator: str, hint: str | None = None) -> None:
        self.operator = operator
        super().__init__(message, hint=hint)

    def or_recomputed(self) -> UnsupportedQuery:
        """The refusal of a query that Spark could answer as a whole, which its hint says now."""
        way = "strategy='recompute' lets Spark compute the view anew after every change."
        hint = way if self.hint is None else f"{self.hint.rstrip('.')}. Or {way}"
        return UnsupportedQuery(self.message, operator=self.operator, hint=hint)


class UnsupportedOperation(EverviewError):
    """A call that this backend, or this table, does not have."""

    code = "UNSUPPORTED_OPERATION"


class InvalidChange(EverviewError):
    """Rows that a table cannot take; the transaction that brought them is rejected whole."""

    code = "INVALID_CHANGE"


class EvaluationError(InvalidChange):
    """An expression has no value for some row: overflow, division by zero, a bad cast.

    ``condition`` is Spark's own error condition, such as ``DIVIDE_BY_ZERO``.
    """

    code = "EVALUATION_ERROR"

    def __init__(self, message: str, *, condition: str, hint: str | None = None) -> None:
        self.condition = condition
        super().__init__(message, hint=hint)


class AssertionViolated(EverviewError):
    """A transaction would have made an assertion's query non-empty."""

    code = "ASSERTION_VIOLATED"


class UnknownName(EverviewError):
    """No table, view or column has this name."""

    code = "UNKNOWN_NAME"


class AlreadyExists(EverviewError):
    """A table, view or assertion of this name exists."""

    code = "ALREADY_EXISTS"


class DependencyError(EverviewError):
    """Something else still needs what was to be dropped."""

    code = "DEPENDENCY_ERROR"


class DatabaseLocked(EverviewError):
    """The database is open already, in this process or in another."""

    code = "DATABASE_LOCKED"


class CorruptDatabase(EverviewError):
    """Files of the database are missing or not what was written."""

    code = "CORRUPT_DATABASE"


class StorageFailed(EverviewError):
    """The disk did not take what was to be written: it is full, or broken. The call has changed nothing."""

    code = "STORAGE_FAILED"


class OutOfMemory(EverviewError):
    """A transaction, or a new view, needs more memory than the process can get; nothing has been changed."""

    code = "OUT_OF_MEMORY"


class ViewSuspended(EverviewError):
    """A view has no answer since ``version``, for ``reason``; it has one again when the offending rows are gone.

    ``condition`` is Spark's own error condition, such as ``DIVIDE_BY_ZERO``.
    """

    code = "VIEW_SUSPENDED"

    def __init__(self, view: str, version: int, reason: str, condition: str) -> None:
        self.view = view
        self.version = version
        self.reason = reason
        self.condition = condition
        super().__init__(
            f"view '{view}' has had no answer since version {version}: {reason}",
            hint="delete or correct the rows it fails on, and it answers again.",
        )


class VerificationFailed(EverviewError):
    """A maintained view differs from Spark's recomputation."""

    code = "VERIFICATION_FAILED"


class InternalError(EverviewError):
    """everview broke one of its own rules."""

    code = "INTERNAL_ERROR"

    def __init__(self, message: str, *, attach: str = "the query and the table definitions") -> None:
        super().__init__(message, hint=f"this is a bug in everview; please report it with {attach}.")


_NOT_OURS = (EverviewError, MemoryError, OSError)
"""What ``guarded`` lets through: errors raised on purpose, and what the machine lacks (memory, disk, network)."""


@contextmanager
def guarded(query: object) -> Iterator[None]:
    """Around everything that is done with a query: what fails inside is an ``EverviewError``, whatever it was.

    Raises:
        UnsupportedQuery: the query is nested more deeply than Python can follow.
        InternalError: anything else that nobody foresaw; it has the query, and the cause is chained.
    """
    try:
        yield
    except _NOT_OURS:
        raise
    except RecursionError as error:
        raise UnsupportedQuery(
            "the query is nested too deeply to be translated.",
            operator="RecursionError",
            hint="split it into views over views, or raise sys.setrecursionlimit.",
        ) from error
    except Exception as error:
        cause = next(iter(str(error).splitlines()), "")
        raise InternalError(
            f"{type(error).__name__}: {cause}\nwith the query: {query}\n",
            attach="the query, the table definitions and this traceback",
        ) from error


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """The hint for a misspelt name, or None when nothing is near.

    >>> did_you_mean("pric", ["price", "volume"])
    "did you mean 'price'?"
    >>> did_you_mean("zzz", ["price"]) is None
    True
    """
    near = difflib.get_close_matches(name.lower(), [c.lower() for c in candidates], n=1, cutoff=0.6)
    if not near:
        return None
    original = next(c for c in candidates if c.lower() == near[0])
    return f"did you mean '{original}'?"
