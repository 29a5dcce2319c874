"""The architecture as rules: who may import whom, how long a module may be, what a rule file holds.

The table ``KNOWS`` is `docs/architecture.md` in code. An import for type checking only counts too: it is knowledge.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import everview

SOURCE = Path(__file__).resolve().parents[2] / "src"

KNOWS: dict[str, frozenset[str]] = {
    "algebra": frozenset(),
    "relational": frozenset({"algebra"}),
    "catalog": frozenset({"relational"}),
    "frontend": frozenset({"algebra", "relational"}),
    "planner": frozenset({"algebra", "relational", "catalog"}),  # keys come from the catalog
    "trigger": frozenset({"algebra", "relational", "planner"}),  # it lowers the planner's trees
    "backends": frozenset({"algebra", "relational", "catalog", "planner", "trigger"}),  # each plans for what it holds
    "storage": frozenset({"algebra", "relational", "catalog"}),
    "cli": frozenset({"<public>", "session.sql.statements"}),  # a script is split as db.sql splits it
    "__main__": frozenset({"cli"}),
}
"""What each part may import besides itself and the leaves. Other parts are session-level: they know all but cli."""

BACKENDS_KNOW: dict[str, frozenset[str]] = {
    "reference": frozenset(),  # the oracle shares nothing with what it judges
    "embedded": frozenset(),
    "spark": frozenset({"embedded"}),  # executors run the embedded kernels
}

LIBRARIES: dict[str, tuple[str, ...]] = {
    "pyspark": ("frontend", "backends.spark", "<session>"),
    "py4j": ("frontend",),
    "numba": ("backends.embedded",),
}
"""Libraries with a price at import, and the only parts that may pay it."""

LONGEST = 450
LONGER: dict[str, str] = {
    "backends/embedded/backend.py": "the methods that the protocol of backends asks for, each a few lines that call its part",
    "backends/spark/backend.py": "the same",
    "catalog.py": "the definitions and the catalog of them: what imports one imports the other",
    "session/database.py": "the public interface, most of it docstrings; the work is done in the parts of session/",
}
"""Modules that may be longer than ``LONGEST`` lines, each with the reason."""


@dataclass(frozen=True)
class Module:
    """A source file: its dotted name without ``everview.``, its text and its syntax tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def part(self) -> str:
        """The package, or the module, directly below ``everview``; empty for ``everview`` itself."""
        return self.name.split(".", maxsplit=1)[0]

    @property
    def is_session_level(self) -> bool:
        """Whether it stands on top: not a listed part, not a leaf, not the package's own front page."""
        return self.part not in KNOWS and self.part != "" and self.part not in leaves()


@dataclass(frozen=True)
class Import:
    """One imported module, as an absolute dotted name, and the names taken from it."""

    target: str
    names: tuple[str, ...]
    line: int
    inside_function: bool


@cache
def modules() -> tuple[Module, ...]:
    """All modules of the package."""
    found = []
    for path in sorted((SOURCE / "everview").rglob("*.py")):
        dotted = ".".join(path.relative_to(SOURCE / "everview").with_suffix("").parts)
        text = path.read_text(encoding="utf-8")
        found.append(Module(dotted.removesuffix("__init__").rstrip("."), path, text, ast.parse(text)))
    return tuple(found)


@cache
def imports(module: Module) -> tuple[Import, ...]:
    """Every import statement, wherever it stands, with relative ones resolved."""
    return tuple(_imports(module))


def _imports(module: Module) -> Iterator[Import]:
    in_functions = {
        id(inner)
        for outer in ast.walk(module.tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for inner in ast.walk(outer)
    }
    package = ["everview", *module.name.split(".")] if module.name else ["everview"]
    if module.path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(module.tree):
        inside = id(node) in in_functions
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, (), node.lineno, inside)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*base, *((node.module,) if node.module else ())])
            yield Import(target, tuple(alias.name for alias in node.names), node.lineno, inside)


def own_targets(module: Module) -> Iterator[tuple[str, int]]:
    """The parts of everview it imports, as dotted names without ``everview.``; ``<public>`` is ``everview`` itself."""
    known = {m.name for m in modules()}
    for found in imports(module):
        if found.target == "everview":
            named = [name if name in known else "<public>" for name in found.names] or ["<public>"]
            yield from ((name, found.line) for name in named)
        elif found.target.startswith("everview."):
            yield found.target.removeprefix("everview."), found.line


@cache
def leaves() -> frozenset[str]:
    """Top-level modules that import nothing of everview but other leaves (errors.py, …); anyone may import them."""
    top = {m.name: m for m in modules() if m.name and "." not in m.name and m.path.name != "__init__.py"}
    found: set[str] = set()
    while new := {n for n, m in top.items() if n not in found and all(t in found for t, _ in own_targets(m))}:
        found |= new
    return frozenset(found)


def where(module: Module, line: int) -> str:
    """A place as editors understand it."""
    return f"{module.path.relative_to(SOURCE.parent)}:{line}"


def test_imports_point_one_way() -> None:
    """A part imports only what lies below it, so that each can be read, tested and replaced without those above."""
    wrong = []
    for module in modules():
        allowed = KNOWS.get(module.part)
        for target, line in own_targets(module):
            part = target.split(".", maxsplit=1)[0]
            if part == module.part or part in leaves():
                continue
            if not allowed & {part, target} if allowed is not None else part == "cli":
                wrong.append(f"{where(module, line)} {module.part or 'everview'} must not know {target}")
    assert wrong == []


def test_backends_do_not_know_each_other() -> None:
    """The reference backend shares no code with the backends that it judges."""
    wrong = []
    for module in modules():
        own = module.name.split(".")
        if own[0] != "backends" or len(own) < 2 or own[1] not in BACKENDS_KNOW:
            continue
        for target, line in own_targets(module):
            other = target.split(".")
            strangers = BACKENDS_KNOW.keys() - BACKENDS_KNOW[own[1]] - {own[1]}
            if other[0] == "backends" and len(other) > 1 and other[1] in strangers:
                wrong.append(f"{where(module, line)} {own[1]} must not know {other[1]}")
    assert wrong == []


def test_heavy_libraries_stay_where_they_belong() -> None:
    """Spark and Numba are imported only by the parts that are about them."""
    wrong = []
    for module in modules():
        for found in imports(module):
            library = found.target.split(".", maxsplit=1)[0]
            homes = LIBRARIES.get(library)
            if homes is None:
                continue
            at_home = any(module.name == home or module.name.startswith(f"{home}.") for home in homes)
            if not at_home and not ("<session>" in homes and module.is_session_level):
                wrong.append(f"{where(module, found.line)} {library} belongs in {', '.join(homes)}")
    assert wrong == []


def test_imports_stand_at_the_top() -> None:
    """Imports inside functions hide dependencies; only pyspark may wait until needed, with a comment."""
    wrong = []
    for module in modules():
        lines = module.text.splitlines()
        for found in imports(module):
            if not found.inside_function:
                continue
            here, above = lines[found.line - 1], lines[found.line - 2].strip()
            is_explained = "#" in here or above.startswith("#")
            if found.target.split(".", maxsplit=1)[0] != "pyspark" or not is_explained:
                wrong.append(f"{where(module, found.line)} import of {found.target} inside a function")
    assert wrong == []


def test_the_top_level_is_a_front_page() -> None:
    """At most six modules lie beside the packages, so that folder names say where things are."""
    top = [m.name for m in modules() if "." not in m.name and m.path.name != "__init__.py"]
    assert len(top) <= 6, top


def test_a_public_class_name_stands_once() -> None:
    """Whoever meets a name knows which class is meant: no other class has it, and no name of a type."""
    places: dict[str, list[str]] = {}
    aliases: dict[str, list[str]] = {}
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(where(module, node.lineno))
            elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
                aliases.setdefault(ast.unparse(node.target), []).append(where(module, node.lineno))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
    # A word is one of a machine in kernels, and one of SQL in the session: they never meet.
    assert {name: found for name, found in aliases.items() if name in places and name != "Word"} == {}


def test_the_database_is_reached_by_its_core() -> None:
    """Parts of the session ask ``Core``; nobody reaches into another object of theirs."""
    wrong = []
    for module in modules():
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.startswith("__"):
                continue
            owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
            if owner.strip("_") in ("database", "db", "core"):
                wrong.append(f"{where(module, node.lineno)} {owner}.{node.attr}")
    assert wrong == []


def test_modules_are_short() -> None:
    """A module above 450 lines has a seam; the exceptions are named with their reasons, and are still needed."""
    lengths = {str(m.path.relative_to(SOURCE / "everview")): len(m.text.splitlines()) for m in modules()}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST and name not in LONGER} == {}
    assert [name for name in LONGER if lengths.get(name, 0) <= LONGEST] == []


def test_the_engine_uses_every_ring() -> None:
    """A module of ``algebra`` that only its tests import is mathematics that nothing runs."""
    used = {target for m in modules() for target, _ in own_targets(m) if target != m.name}
    assert {m.name for m in modules() if m.part == "algebra" and "." in m.name} - used == set()


def test_a_rule_file_holds_one_rule() -> None:
    """A rewrite is found by its file name: one public function a file, named after it, with its before and after."""
    wrong = []
    for module in modules():
        if module.path.parent.name != "rules" or module.path.name in ("__init__.py", "pipeline.py"):
            continue
        functions = [n.name for n in module.tree.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]
        if functions != [module.path.stem]:
            wrong.append(f"{where(module, 1)} has the public functions {functions}")
        if f">>> show({module.path.stem}(" not in module.text:
            wrong.append(f"{where(module, 1)} shows no plan before and after")
    assert wrong == []


def _loaded(program: str, *names: str) -> set[str]:
    """Those of some modules that a new process has loaded after a program."""
    program = f"import sys; {program}; print(*(set(sys.modules) & {set(names)}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_everview_is_cheap() -> None:
    """``import everview`` and its names load neither Spark nor Numba: a script pays for them when it uses them."""
    assert _loaded("import everview; everview.connect", "pyspark", "py4j", "numba", "everview.session.public") == {
        "everview.session.public"
    }


def test_tasks_import_what_runs_in_them() -> None:
    """A Python worker of Spark's loads look-ups, and neither kernels nor the session, for which every executor would wait."""
    unneeded = ("everview.session.public", "everview.learn", "everview.catalog", "everview.relational.functions")
    unneeded += ("numba", "sqlglot", "py4j", "pandas", "deltalake")
    assert _loaded("import everview.backends.spark.task_lookups", *unneeded) == set()


def test_public_names_are_those_listed() -> None:
    """Names are loaded when they are asked for: all that are listed are there, one that is not is no attribute."""
    assert {name for name in everview.__all__ if not hasattr(everview, name)} == set()
    assert set(everview.__all__) <= set(dir(everview))
    with pytest.raises(AttributeError, match="'everview' has no attribute 'nothing'"):
        _ = everview.nothing
