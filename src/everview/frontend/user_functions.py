"""Functions of the users' sessions: what texts call them, and how a session of ours comes to know them.

A function of Python is called in texts by its name and a hash of its code, so that functions of one name in two sessions stay
two, and one without a registered name has one too. This process holds the functions that its queries call. In another process,
which opens a database, the function that some session has registered under the plain name is taken.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakSet

from pyspark.sql import SparkSession

from everview.errors import EvaluationError
from everview.frontend.spark_text import sequence
from everview.relational.spark_code import named_function, plain_name

_sessions: Final[WeakSet[SparkSession]] = WeakSet()
"""The sessions that databases of this process were opened with."""
_held: Final[dict[str, Any]] = {}
"""Functions of Python that queries of this process call, by the name that texts have for them."""


def remember_session(session: SparkSession) -> None:
    """Notes a session of the user's, whose functions views may call from now on."""
    _sessions.add(session)


def called_function(session: Any, call: Any) -> tuple[tuple[str | int, ...], list[Any]]:
    """The text of a call of a function of Python, and its arguments; the session and this process know it from now on."""
    name = named_function(call.name(), bytes(call.func().command().unsafeArray()))
    if name not in _held:
        kind = session._jvm.org.apache.spark.sql.execution.python.UserDefinedPythonFunction
        (constructor,) = session._jvm.java.lang.Class.forName(kind._fqn).getConstructors()
        nothing = session._jvm.java.util.ArrayList()
        # Newer versions can be told of expressions that compute the same.
        more = [nothing] * (constructor.getParameterCount() - 5)
        _held[name] = kind(name, call.func(), call.dataType(), call.evalType(), True, *more)
    parts: list[str | int] = [f"`{name}`("]
    inputs: list[Any] = []
    for child in sequence(call.children()):
        parts.append(", " if inputs else "")
        if child.getClass().getSimpleName() == "NamedArgumentExpression":
            parts.append(f"{child.key()} => ")
            child = child.value()  # noqa: PLW2901  # the argument itself
        parts.append(len(inputs))
        inputs.append(child)
    return tuple(part for part in (*parts, ")") if part != ""), inputs


def introduce(session: Any, name: str) -> None:
    """Makes a function known to a session under the name that texts have for it.

    Raises:
        EvaluationError: this process does not hold it, and no session has one of its plain name.
    """
    registry = _state(session).functionRegistry()
    identifier = _identifier(session, name)
    if registry.functionExists(identifier):
        return
    if name in _held:
        session._jsparkSession.udf().registerPython(name, _held[name])
        return
    plain = plain_name(name)
    for known in list(_sessions):
        found = _state(known).functionRegistry().lookupFunctionEntry(_identifier(known, plain))
        if found.isDefined():
            registry.registerFunction(identifier, found.get()._1(), found.get()._2())
            return
    raise EvaluationError(
        f"the function {plain} is not registered in Spark.",
        condition="UNRESOLVED_ROUTINE",
        hint="register it with spark.udf.register, under that name, in the session that connect(spark=…) is given.",
    )


def copy_all_functions(target: SparkSession) -> None:
    """Registers the temporary functions of all sessions of the user's, which are called by their plain names."""
    for session in list(_sessions):
        copy_functions(session, target)


def copy_functions(source: SparkSession, target: SparkSession) -> None:
    """Registers the temporary functions of one session in another."""
    theirs, ours = (_state(s).functionRegistry() for s in (source, target))
    for listed in sequence(_state(source).catalog().listTemporaryFunctions()):
        identifier = _identifier(source, listed.funcName())
        found = theirs.lookupFunctionEntry(identifier)
        if found.isDefined():
            entry = found.get()
            ours.registerFunction(identifier, entry._1(), entry._2())


def _identifier(session: Any, name: str) -> Any:
    some = session._jvm.scala.Option.apply
    return session._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name, some("session"), some("system"))


def _state(session: Any) -> Any:
    return session._jsparkSession.sessionState()
