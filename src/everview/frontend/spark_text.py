"""A resolved expression of Catalyst as SQL text that any session resolves to the same expression again.

Catalyst's own ``sql`` nearly does this; what it leaves out is written here: lambdas, schemas and options of parsers, names of
fields. Columns become numbers, positions in the list of inputs. Whoever asks checks the round trip.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from everview.errors import UnsupportedQuery
from everview.relational.quoting import quote

Text = tuple[str | int, ...]

_HOLE: Final = re.compile(r"`?everview_hole_(\d+)`?")


class TextWriter:
    """Writes one expression; ``inputs`` are the parts of it that are its arguments, in the order met."""

    def __init__(self, session: Any, is_input: Callable[[Any], bool]) -> None:
        self._session = session
        self._is_input = is_input
        self.inputs: list[Any] = []

    def write(self, expression: Any) -> Text:
        """The text of an expression."""
        if self._is_input(expression):
            return (self._position(expression),)
        name = expression.getClass().getSimpleName()
        if name == "Cast" and expression.dataType().equals(expression.child().dataType()):
            return self.write(expression.child())  # Spark puts one around a time plus an interval, and would again
        if name in _FORMS:
            return _merged(_FORMS[name](self, expression))
        if is_replaceable(self._session, expression):
            return self._call(expression.prettyName(), parameters_of(self._session, expression))
        children = sequence(expression.children())
        if any(c.getClass().getSimpleName() == "LambdaFunction" for c in children):
            return self._call(expression.prettyName(), children)
        return self._by_catalyst(expression, children)

    def _position(self, expression: Any) -> int:
        for i, known in enumerate(self.inputs):
            if known.semanticEquals(expression):
                return i
        self.inputs.append(expression)
        return len(self.inputs) - 1

    def _call(self, name: str, args: Sequence[Any], *more: str) -> Text:
        parts: list[str | int] = [f"{name}("]
        for i, arg in enumerate(args):
            parts.extend((", ",) if i else ())
            parts.extend(self.write(arg))
        return _merged([*parts, *(f", {m}" for m in more), ")"])

    def _by_catalyst(self, expression: Any, children: Sequence[Any]) -> Text:
        """What Catalyst writes for the node over columns with unlikely names, and the children's texts in their places."""
        if not children:
            return (str(expression.sql()),)
        holes = self._session._jvm.java.util.ArrayList()
        for i, child in enumerate(children):
            is_literal = child.getClass().getSimpleName() == "Literal"  # some classes insist on constants
            holes.add(child if is_literal else _hole(self._session, i, child))
        text = str(expression.withNewChildren(scala_sequence(self._session, holes)).sql())
        parts: list[str | int] = []
        at = 0
        for found in _HOLE.finditer(text):
            inner = self.write(children[int(found[1])])
            is_input = len(inner) == 1 and isinstance(inner[0], int)
            parts += [text[at : found.start()], *(inner if is_input else ("(", *inner, ")"))]
            at = found.end()
        return _merged([*parts, text[at:]])

    def _lambda(self, expression: Any) -> list[str | int]:
        names = [_variable(v) for v in sequence(expression.arguments())]
        head = names[0] if len(names) == 1 else f"({', '.join(names)})"
        return [f"{head} -> ", *self.write(expression.function())]

    def _arrays_zip(self, expression: Any) -> list[str | int]:
        """The function names the fields of its result after its arguments, so that each is written as a field of that name."""
        parts: list[str | int] = []
        for child, name in zip(sequence(expression.children()), sequence(expression.names()), strict=True):
            field = name.toString()
            parts += [
                ", " if parts else "",
                f"named_struct({_quoted(field)}, ",
                *self.write(child),
                f").{quote(field)}",
            ]
        return ["arrays_zip(", *parts, ")"]

    def _days(self, expression: Any) -> list[str | int]:
        """The days of an interval that is added to a date."""
        return ["EXTRACT(DAY FROM ", *self.write(expression.child()), ")"]

    def _earlier(self, expression: Any) -> list[str | int]:
        """A time minus an interval, which has no name as a function."""
        return ["((", *self.write(expression.start()), ") - (", *self.write(expression.interval()), "))"]

    def _collated(self, expression: Any) -> list[str | int]:
        return ["((", *self.write(expression.child()), f") COLLATE {expression.collation().sql()})"]

    def _parser(self, expression: Any) -> list[str | int]:
        schema = _quoted(expression.schema().sql())
        return list(self._call(expression.prettyName(), [expression.child()], schema, *_options(expression)))

    def _writer(self, expression: Any) -> list[str | int]:
        return list(self._call(expression.prettyName(), [expression.child()], *_options(expression)))

    def _variant_get(self, expression: Any) -> list[str | int]:
        name = "variant_get" if expression.failOnError() else "try_variant_get"
        args = [expression.child(), expression.path()]
        return list(self._call(name, args, _quoted(expression.targetType().sql())))

    def _like_many(self, expression: Any) -> list[str | int]:
        name = expression.getClass().getSimpleName()
        word = ("NOT " if name.startswith("Not") else "") + ("LIKE ANY" if name.endswith("Any") else "LIKE ALL")
        patterns = [p if p is None else p.toString() for p in sequence(expression.patterns())]
        listed = ", ".join("NULL" if p is None else _quoted(p) for p in patterns)
        return ["((", *self.write(expression.child()), f") {word} ({listed}))"]

    def _named_struct(self, expression: Any) -> list[str | int]:
        return list(self._call("named_struct", sequence(expression.children())))

    def _user_function(self, expression: Any) -> list[str | int]:
        given = expression.udfName()
        name = given.get() if given.isDefined() else None
        if name is None:
            raise UnsupportedQuery(
                "a function of Scala without a name cannot be computed again.",
                operator="ScalaUDF",
                hint="register it with spark.udf.register.",
            )
        quoted = ".".join(f"`{part}`" for part in name.split("."))
        return list(self._call(quoted, sequence(expression.children())))


_FORMS: Final[dict[str, Callable[[TextWriter, Any], list[str | int]]]] = {
    "LambdaFunction": TextWriter._lambda,
    "NamedLambdaVariable": lambda writer, expression: [_variable(expression)],
    "Alias": lambda writer, expression: list(writer.write(expression.child())),
    "JsonToStructs": TextWriter._parser,
    "CsvToStructs": TextWriter._parser,
    "XmlToStructs": TextWriter._parser,
    "StructsToJson": TextWriter._writer,
    "StructsToCsv": TextWriter._writer,
    "StructsToXml": TextWriter._writer,
    "ArraysZip": TextWriter._arrays_zip,
    "Collate": TextWriter._collated,
    "DatetimeSub": TextWriter._earlier,
    "ExtractANSIIntervalDays": TextWriter._days,
    "VariantGet": TextWriter._variant_get,
    "CreateNamedStruct": TextWriter._named_struct,
    "ScalaUDF": TextWriter._user_function,
    "HyperLogLogPlusPlus": lambda writer, expression: list(
        writer._call("approx_count_distinct", sequence(expression.children()), f"{expression.relativeSD()!r}D")
    ),
    **dict.fromkeys(("LikeAny", "LikeAll", "NotLikeAny", "NotLikeAll"), TextWriter._like_many),
}


def is_replaceable(session: Any, expression: Any) -> bool:
    """Whether the expression only stands for another one."""
    return is_a(session, expression, "RuntimeReplaceable")


def parameters_of(session: Any, expression: Any) -> list[Any]:
    """The arguments that the user has written of an expression that stands for another."""
    inherits = is_a(session, expression, "InheritAnalysisRules")
    return sequence(expression.parameters() if inherits else expression.children())


def is_a(session: Any, expression: Any, kind: str) -> bool:
    """Whether the expression is of one of Catalyst's classes or traits of expressions."""
    java_class = session._jvm.java.lang.Class.forName(f"org.apache.spark.sql.catalyst.expressions.{kind}")
    return bool(java_class.isInstance(expression))


def sequence(seq: Any) -> list[Any]:
    """A Scala sequence as a list."""
    return [seq.apply(i) for i in range(seq.size())]


def scala_sequence(session: Any, java_list: Any) -> Any:
    """A Java list as a Scala sequence."""
    return session._jvm.scala.jdk.CollectionConverters.ListHasAsScala(java_list).asScala().toSeq()


def attribute(session: Any, name: str, data_type: Any, *, nullable: bool = True) -> Any:
    """A new column of Catalyst's."""
    catalyst = session._jvm.org.apache.spark.sql.catalyst.expressions
    empty = session._jvm.org.apache.spark.sql.types.Metadata.empty()
    nothing = scala_sequence(session, session._jvm.java.util.ArrayList())
    return catalyst.AttributeReference(name, data_type, nullable, empty, catalyst.NamedExpression.newExprId(), nothing)


def _hole(session: Any, position: int, child: Any) -> Any:
    return attribute(session, f"everview_hole_{position}", child.dataType())


def _variable(variable: Any) -> str:
    return f"everview_x{variable.exprId().id()}"


def _options(expression: Any) -> list[str]:
    options = sorted((str(pair._1()), str(pair._2())) for pair in sequence(expression.options().toSeq()))
    if not options:
        return []
    return ["map(" + ", ".join(f"{_quoted(k)}, {_quoted(v)}" for k, v in options) + ")"]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _merged(parts: Sequence[str | int]) -> Text:
    """The parts with neighbouring texts joined."""
    out: list[str | int] = []
    for part in parts:
        if isinstance(part, str) and out and isinstance(out[-1], str):
            out[-1] += part
        elif part != "":
            out.append(part)
    return tuple(out)
