"""What ``explain`` says of a skew-aware plan: parts, views, how a change meets each combination of parts, and costs."""

from __future__ import annotations

from typing import Any

from everview.planner.skew_plan import Element, PartJoin, SkewPlan
from everview.trigger.format_plan import update_json


def skew_lines(plan: SkewPlan) -> list[str]:
    """The plan in words."""
    names = [a.name for a in plan.query.atoms]
    lines = [f"query: {plan.shape}, maintained by heavy and light parts (IVM^ε)", "parts:"]
    if plan.rotation is not None:
        lines[-1] = f"one set of parts for all occurrences of {names[0]}:"
    for i, (name, keys) in enumerate(zip(names, plan.partitions, strict=True)):
        lines.append(f"  {name}: {_partition(plan, i, keys_text(plan, i)) if keys else 'not partitioned'}")
    lines.append("auxiliary views, * stored:" if plan.views else "auxiliary views: none")
    for view in plan.views:
        product = " * ".join(_part(plan, p) for p in view.parts)
        lines.append(f"  {view.name}[{', '.join(view.keys)}] = Σ {product}  *  at most {_power(view.size)} entries")
    if plan.branches:
        lines.append("rows are enumerated with constant delay, from")
        lines += [f"  {', then '.join(plan.name_of(s.source) for s in branch.steps)}" for branch in plan.branches]
        lines.append("a changed row is joined for the views:")
        for view in plan.views:
            upkeep = zip(view.parts, view.upkeep, strict=True)
            lines += [f"  δ{plan.name_of(own)} for {view.name}: {_join(plan, join)}" for own, join in upkeep]
    else:
        times = "" if plan.rotation is None else ", counted three times"
        lines.append(f"a changed row meets the parts of the others{times}:")
    if plan.rotation is not None:
        lines.append(
            f"  δ{names[0]} * δ{names[0]}: pairs of changed rows, one of a loop, meet {names[0]} in look-ups: O(1)"
        )
    for name, cases in zip(names, plan.cases, strict=True):
        for case in cases:
            how = f"a look-up in {case.view.name}: O(1)" if case.view and not case.exponent else _join(plan, case.join)
            lines.append(f"  δ{name} * {' * '.join(plan.name_of(p) for p in case.parts)}: {how}")
    lines.append("one changed row of")
    lines += [f"  {cost.text}" for cost in plan.costs]
    return [*lines, f"space: {plan.space}"]


def keys_text(plan: SkewPlan, atom: int) -> str:
    """What an atom is partitioned on, with its threshold."""
    return " and ".join(f"{', '.join(k.variables)} (θ = N^{k.epsilon})" for k in plan.partitions[atom])


def skew_json(plan: SkewPlan) -> dict[str, Any]:
    """The same for programs."""
    return {
        "shape": plan.shape,
        "partitions": {
            atom.name: [{"variables": list(k.variables), "epsilon": float(k.epsilon)} for k in keys]
            for atom, keys in zip(plan.query.atoms, plan.partitions, strict=True)
        },
        "auxiliary_views": [
            {
                "name": v.name,
                "keys": list(v.keys),
                "parts": [plan.name_of(p) for p in v.parts],
                "size_exponent": float(v.size),
            }
            for v in plan.views
        ],
        "space_exponent": float(plan.space.exponent),
        "updates": {cost.atom: update_json(cost) for cost in plan.costs},
    }


def _partition(plan: SkewPlan, atom: int, keys: str) -> str:
    parts = plan.parts_of(atom)
    if len(parts) > 1:
        return f"on {keys} into {', '.join(plan.name_of(p) for p in parts)}"
    return f"on {keys}, so that all rows are {'heavy' if all(parts[0].heavy) else 'light'}"


def _part(plan: SkewPlan, part: Element) -> str:
    return f"{plan.name_of(part)}[{', '.join(plan.variables_of(part))}]"


def _join(plan: SkewPlan, join: PartJoin) -> str:
    names = [plan.name_of(step) for step in join.steps]
    if not names:
        return "as it is: O(1)"
    if not join.exponent:
        return f"look-ups in {', '.join(names)}: O(1)"
    promise = "" if join.is_promised else ", for which nothing is promised"
    return f"{', then '.join(names)}: O({_power(join.exponent)}){promise}"


def _power(exponent: object) -> str:
    return {"0": "1", "1": "N"}.get(str(exponent), f"N^{exponent}")
