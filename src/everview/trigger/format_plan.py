"""What ``explain`` says of a planned tree, whatever engine runs it: class, order, views, and what a changed row costs."""

from __future__ import annotations

from everview.planner.cost import UpdateCost
from everview.planner.format_tree import format_tree
from everview.planner.plan_recursive import RecursivePlan
from everview.planner.plan_tree import TreePlan
from everview.relational.format import format_expression
from everview.trigger.format_tree_program import format_view
from everview.trigger.order_accesses import costs_by_ranges
from everview.trigger.tree_program import TreeProgram


def class_lines(plan: TreePlan, program: TreeProgram, subject: str = "query") -> list[str]:
    """The class of the query, the variable order, and the views, a star at those that are stored."""
    lines = [f"{subject}: {plan.class_sentence}"]
    if plan.order.text:
        lines.append(f"variable order: {plan.order.text}")
    return [*lines, "views, * stored:", *(f"  {line}" for line in _views(plan, program))]


def recursive_lines(plan: RecursivePlan, program: TreeProgram, size: int) -> list[str]:
    """The views of a hierarchy with their definitions, what is checked when they are read, and what they hold."""
    stored = [v for v in plan.hierarchy.views if v.name in program.stored]
    some = "view" if len(stored) == 1 else "views"
    lines = [f"recursive deltas, {plan.depth_text}: {len(stored)} {some}, {size:,} bytes", "views, * stored:"]
    for view in reversed(plan.hierarchy.views):
        joined = " * ".join(f"{a.name}({', '.join(a.variables)})" for a in (plan.query.atoms[i] for i in view.atoms))
        checked = "".join(f" * {{{_condition(program, i)}}}" for i in sorted(view.conditions))
        wide = f", up to N^{plan.size_of(view)} rows" if view.name in plan.wide else ""
        star = "  *" if view.name in program.stored else ""
        lines.append(f"  {view.name}[{', '.join(view.keys)}] = Sum({joined}{checked}){star}{wide}")
    for pulled in plan.pulled:
        cost = (
            f"about {pulled.part:,.0f} rows an update; {pulled.full:,.0f} in a view for each value it is compared with"
        )
        lines.append(f"{{{_condition(program, pulled.condition)}}} is checked when {pulled.view} is read: {cost}")
    return lines


def _condition(program: TreeProgram, number: int) -> str:
    residual = program.block.residuals[number]
    return format_expression(residual.condition, residual.variables).removeprefix("(").removesuffix(")")


def cost_lines(plan: TreePlan | RecursivePlan, program: TreeProgram) -> list[str]:
    """Why a changed row of each relation costs what it costs."""
    return ["a changed row of", *(f"  {cost.why}" for cost in costs_by_ranges(program, plan.costs))]


def update_json(cost: UpdateCost) -> dict[str, str | float]:
    """The same for programs."""
    told: dict[str, str | float] = {
        "bound": str(cost.bound),
        "exponent": float(cost.bound.exponent),
        "reason": cost.reason,
    }
    if cost.indicator_bound is not None:
        told["indicator_exponent"] = float(cost.indicator_bound.exponent)
    return told


def _views(plan: TreePlan, program: TreeProgram) -> list[str]:
    lines = format_tree(plan.tree, program.stored).splitlines()
    if program.result and program.result not in {node.name for node in plan.tree.nodes()}:
        parts = " ⊗ ".join(root.name for root in plan.tree.roots)
        star = "  *" if program.result in program.stored else ""
        lines = [f"{format_view(program.view(program.result))} = {parts}{star}", *(f"  {line}" for line in lines)]
    return lines
