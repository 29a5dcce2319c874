"""Expressions over whole columns: what ``relational.evaluate`` defines row by row, in NumPy.

``compile_vectorised``, ``compile_predicate`` and ``compile_projection`` turn expressions into functions from the columns of a
batch to a column, a mask or several columns.
"""

from everview.backends.embedded.expressions.vectorise import (
    Predicate,
    Projection,
    Vectorised,
    compile_predicate,
    compile_projection,
    compile_vectorised,
    constant_vector,
)

__all__ = [
    "Predicate",
    "Projection",
    "Vectorised",
    "compile_predicate",
    "compile_projection",
    "compile_vectorised",
    "constant_vector",
]
