"""The names that a user of everview has, from wherever they are: what ``everview`` shows as its own."""

from everview import learn
from everview.algebra.ring import Ring
from everview.backends.base import Suspension, VersionedDelta
from everview.errors import (
    AlreadyExists,
    AssertionViolated,
    CorruptDatabase,
    DatabaseLocked,
    DependencyError,
    EvaluationError,
    EverviewError,
    InternalError,
    InvalidChange,
    InvalidQuery,
    OutOfMemory,
    StorageFailed,
    UnknownName,
    UnsupportedOperation,
    UnsupportedQuery,
    VerificationFailed,
    ViewSuspended,
)
from everview.session.connecting import connect
from everview.session.database import Assertion, Commit, Database, Subscription, Table, Transaction, View
from everview.session.open_backend import backend_of
from everview.session.queries import UnionMaxQuery, union_max
from everview.session.results import Changes, Result
from everview.session.rings import register_ring
from everview.session.rows.factorized_change import Product
from everview.session.verification import VerificationReport

__all__ = [
    "AlreadyExists",
    "Assertion",
    "AssertionViolated",
    "Changes",
    "Commit",
    "CorruptDatabase",
    "Database",
    "DatabaseLocked",
    "DependencyError",
    "EvaluationError",
    "EverviewError",
    "InternalError",
    "InvalidChange",
    "InvalidQuery",
    "OutOfMemory",
    "Product",
    "Result",
    "Ring",
    "StorageFailed",
    "Subscription",
    "Suspension",
    "Table",
    "Transaction",
    "UnionMaxQuery",
    "UnknownName",
    "UnsupportedOperation",
    "UnsupportedQuery",
    "VerificationFailed",
    "VerificationReport",
    "VersionedDelta",
    "View",
    "ViewSuspended",
    "backend_of",
    "connect",
    "learn",
    "register_ring",
    "union_max",
]
