"""The reference backend: recomputes every view in plain Python; the oracle of the tests."""

from everview.backends.reference.backend import ReferenceBackend

__all__ = ["ReferenceBackend"]
