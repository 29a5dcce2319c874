"""Incremental view maintenance for PySpark: the answers of Spark SQL queries, kept fresh while their tables change.

Importing everview starts no JVM and imports no Spark; that happens when the first query is translated. The public names, listed
in ``everview.session.public``, are loaded when the first of them is asked for: Spark's tasks, which need only the part of
everview that runs in them, do not wait for the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everview.session.public import *  # noqa: F403  # its __all__ is ours
else:

    def __getattr__(name: str) -> Any:
        if name.startswith("_") and name != "__all__":
            raise AttributeError(f"module 'everview' has no attribute {name!r}")
        public = import_module("everview.session.public")
        if name == "__all__" or name in public.__all__:
            globals()[name] = getattr(public, name)
        if name in globals():  # or a part of everview that has just been imported
            return globals()[name]
        raise AttributeError(f"module 'everview' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *import_module("everview.session.public").__all__})
