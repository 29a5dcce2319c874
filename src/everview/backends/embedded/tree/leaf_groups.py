"""Whether a trigger sums the rows of a change by their keys before it does anything else."""

from __future__ import annotations

from everview.trigger.tree_program import AccessKind, AddIndicator, Compute, LiftRows, Split, TreeProgram, Trigger


def needs_groups(program: TreeProgram, trigger: Trigger) -> bool:
    """Whether the rows of a change are to be summed by their keys before anything else.

    Not so where nobody keeps the sums and each row only looks one entry up, which takes less time than to find its group.
    """
    lift, *others = trigger.statements
    assert isinstance(lift, LiftRows), "a trigger begins with its leaf"
    if lift.target in program.stored or not others or any(isinstance(s, AddIndicator | Split) for s in others):
        return True
    readers = [s for s in others if isinstance(s, Compute) and s.source == lift.target]
    return not all(s.joins and s.joins[0].kind is AccessKind.LOOKUP for s in readers)
