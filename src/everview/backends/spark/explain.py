"""How a view is maintained, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from everview.backends.spark.stages import Grouped, Linear, Partitioned, Stage, StageProgram
from everview.backends.spark.terms import Term
from everview.backends.spark.transactions import SHARE
from everview.catalog import ViewDefinition
from everview.relational.format import format_plan
from everview.relational.nodes import Scan

_LOOKUPS: Final = (
    "segments of more than local_rows rows are searched in the driver's copies of them, up to lookup_bytes on disk; "
    "before there is a copy, and beyond, by Spark jobs"
)
_FULL: Final = {"recompute": "full"}


def _text(view: ViewDefinition, program: StageProgram) -> str:
    lines = [format_plan(view.plan).rstrip(), "", "stages:"]
    stored = program.stored()
    for stage in program.stages:
        told = _told(stage, stored)
        lines.append(f"  {stage.name}: {told['kind']}, {told['rule']}; keeps {told['keeps']}")
        lines += [f"    {'-' if t.sign < 0 else '+'} {_term(t)}" for t in stage.terms]
    lines.append(f"update: {_update(view)}")
    return "\n".join(lines) + "\n"


def _update(view: ViewDefinition) -> str:
    if "full" in (view.options.refresh, _FULL.get(view.options.strategy)):
        return "every stage computed anew from its inputs"
    incremental = f"incremental; {_LOOKUPS}"
    match view.options.refresh:
        case "auto":
            return (
                f"{incremental}; computed anew by a transaction that changes more than {SHARE:.0%} of the rows it reads"
            )
        case "incremental_strict":
            return f"{incremental}; a transaction that would need a recomputation is rejected"
        case _:
            return incremental


def _json(view: ViewDefinition, program: StageProgram) -> str:
    stored = program.stored()
    told = {
        "view": view.name,
        "backend": "spark",
        "strategy": "first_order",
        "update": _update(view),
        "inputs": sorted(program.inputs()),
        "stages": [{"name": s.name, **_told(s, stored), "terms": [_term(t) for t in s.terms]} for s in program.stages],
        "plan": format_plan(view.plan).splitlines(),
    }
    return json.dumps(told, indent=2)


def _told(stage: Stage, stored: frozenset[str]) -> dict[str, Any]:
    output = ["its output"] if stage.name in stored else []
    match stage:
        case Linear():
            kind, rule, keeps = "linear", "each input's change joined with the others", output
        case Grouped():
            rule = "payloads of the touched groups, old and new"
            kind, keeps = "grouped", ["a payload a group", *output]
        case Partitioned():
            rule = "touched partitions computed anew" if stage.partition else "computed anew from its stored input"
            if stage.first:
                rule += " if one of its rows has left or moved back, else from the change alone"
            kind, keeps = "partitioned", output
    return {"kind": kind, "rule": rule, "keeps": " and ".join(keeps) or "nothing"}


def _term(term: Term) -> str:
    return " ⋈ ".join(leaf.table if isinstance(leaf, Scan) else "values" for leaf in term.inputs)


EXPLAINERS: Final[dict[str, Callable[[ViewDefinition, StageProgram], str]]] = {"text": _text, "json": _json}
"""The modes that this backend has."""
