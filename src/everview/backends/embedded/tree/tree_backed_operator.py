"""What the operators over view trees have in common, and groups of them that share stored views.

A tree takes in the changes of its atoms one after another: atom i meets the new contents of the atoms before it and the old
ones of those after it. Trees that share a stored view must see it at the same moment, so a *group* of them takes the atoms one
after another for all. In the step of an atom the views that contain it are written and all others are read, so the order of
the trees within a step does not matter. One tree of the group, the *owner*, writes a shared view, and the others borrow it.

A group is an operator of the DAG: its inputs are those of all its trees, and it comes before them. When its turn is over, each
tree hands on its own delta.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.factorized_batch import FactorizedBatch
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.tree.machine import AfterChunk, Machine
from everview.backends.embedded.tree.step_machine import StepMachine
from everview.backends.embedded.tree.tree_state import TreeState
from everview.backends.embedded.tree.trigger_code import ResultRegisters
from everview.backends.embedded.tree.view_identity import AtomIdentity
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.vectors import Batch
from everview.errors import EvaluationError
from everview.planner.plan_recursive import RecursivePlan
from everview.planner.plan_tree import TreePlan
from everview.relational.nodes import Schema
from everview.trigger.tree_program import TreeProgram


@dataclass(frozen=True, slots=True)
class Sharing:
    """Who else uses a stored view: the user views over the trees that have it, those of the owner first."""

    is_owned: bool
    others: tuple[str, ...]

    @property
    def text(self) -> str:
        """For ``explain``."""
        text = f"shared with view{'s' if len(self.others) > 1 else ''} {', '.join(self.others)}"
        return text if self.is_owned else f"{text}, written and counted by {self.others[0]}"


class TreeBacked(Operator):
    """An operator that a view tree maintains. In a group, the triggers have run before ``push``."""

    survives_lack_of_memory = True

    def __init__(
        self,
        fields: Schema,
        inputs: tuple[Operator, ...],
        program: TreeProgram,
        loading: TreeProgram | None,
        plan: TreePlan | RecursivePlan | None,
        dictionary: Dictionary,
    ) -> None:
        super().__init__(fields, inputs)
        self.program = program
        self.loading = loading
        """What takes in the contents at first, where that needs more views stored than the changes to come do."""
        self.plan = plan
        self._dictionary = dictionary
        self.state = TreeState(program, inputs, dictionary)
        self.atoms: tuple[AtomIdentity, ...] | None = None
        """The block's atoms as other trees know them; None for a tree that shares nothing."""
        self.group: TreeGroup | None = None

    def load(self, contents: Sequence[Batch | None]) -> Batch:
        """Takes in the whole contents of the inputs, but for those (None) that what it borrows has taken in."""
        raise NotImplementedError

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        if self.group is None:
            self.take(deltas)
        elif not self.group.has_run_for(self):
            return None
        return self.moved()

    def take(self, deltas: Sequence[Batch | None]) -> None:
        """Runs the triggers of all atoms that have changed."""
        self.begin()
        self.state.take(deltas, self.after_chunk)

    def take_atom(self, atom: int, delta: Batch) -> None:
        """Runs the trigger of one atom."""
        self.begin()
        self.state.take_atom(atom, delta, self.after_chunk)

    def begin(self) -> None:
        """The views are about to change."""
        self.state.begin()

    def collect(self, machine: Machine, results: Sequence[ResultRegisters]) -> None:
        """Takes what a chunk has made of a result that is not stored."""

    def moved(self) -> Batch | None:
        """The delta of the output, after the triggers have run."""
        raise NotImplementedError

    @property
    def after_chunk(self) -> AfterChunk | None:
        """What to do with the registers of a machine."""
        return None

    def state_over(self, program: TreeProgram, maps: Mapping[str, ViewMap], borrowed: frozenset[str]) -> TreeState:
        """A state of this tree over other maps."""
        return TreeState(program, self.inputs, self._dictionary, maps, borrowed)

    def adopt(self, state: TreeState) -> None:
        """Goes on with another state, whose views have the same contents."""
        self.state = state

    def ask_for_indexes(self) -> None:
        """Asks again for the indexes that its views must keep; those that triggers slice by come and go."""

    def sharing(self) -> dict[str, Sharing]:
        """The stored views that other trees have, too, by name."""
        return {} if self.group is None else self.group.sharing(self)

    def commit(self) -> None:
        self.state.commit()

    def rollback(self) -> None:
        self.state.rollback()

    def nbytes(self) -> dict[str, int]:
        """Bytes of each stored view and of its indexes; what is shared counts with the owner."""
        sizes = self.state.nbytes()
        for name, shared in self.sharing().items():
            if not shared.is_owned:
                sizes[f"{name}.counted_by({shared.others[0]})"] = 0
        return sizes

    def python_parts(self) -> list[str]:
        return self.state.python_parts()


class GroupStep:
    """What runs when an input has changed: the triggers of one atom in all trees that have it."""

    def __init__(self, place: int, runs: Sequence[tuple[TreeBacked, int]]) -> None:
        self.input = place
        """Which input of the group it is."""
        self.runs = tuple((tree, atom) for tree, atom in runs if not tree.state.is_idle(atom))
        self.failed: TreeBacked = runs[0][0]
        """The tree that could not go on."""
        self._machine: StepMachine | None = None
        plain = [r for r in self.runs if not _has_indicators(*r)]
        self._together, self._alone = (plain, [r for r in self.runs if r not in plain])
        if len(plain) < 2:
            self._together, self._alone = [], list(self.runs)

    def take(self, delta: Batch) -> None:
        """Runs the triggers: as one where a change is rows; products each tree takes its own way."""
        alone: Sequence[tuple[TreeBacked, int]] = self._alone
        if isinstance(delta, FactorizedBatch):
            alone = self.runs
        elif self._together:
            self._take_together(delta)
        for tree, atom in alone:
            self.failed = tree
            tree.take_atom(atom, delta)

    def _take_together(self, delta: Batch) -> None:
        if self._machine is None:
            self._machine = StepMachine([(t.state, t.atoms or (), a) for t, a in self._together])
        machine = self._machine
        for tree, _ in self._together:
            tree.begin()
        try:
            machine.take(delta, self._collect if any(t.after_chunk for t, _ in self._together) else None)
        except EvaluationError:
            self.failed = self._together[machine.failed][0]
            raise

    def _collect(self, machine: Machine) -> None:
        assert self._machine is not None
        for (tree, _), results in zip(self._together, self._machine.results, strict=True):
            tree.collect(machine, results)


def _has_indicators(tree: TreeBacked, atom: int) -> bool:
    return tree.program.has_indicators(tree.state.triggers[atom])


class TreeGroup(Operator):
    """Trees that share stored views.

    Args:
        members: The trees, in the order in which they were made: the first that stores a view owns it.
        users: Names the user views over a tree.
    """

    survives_lack_of_memory = True

    def __init__(self, members: Sequence[TreeBacked], users: Callable[[Operator], tuple[str, ...]]) -> None:
        inputs = tuple(dict.fromkeys(i for m in members for i in m.inputs))
        super().__init__((), inputs)
        self.members = tuple(members)
        self._users = users
        self._steps = _steps(members, inputs)
        self._failure: tuple[TreeBacked, EvaluationError] | None = None

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        """Runs the triggers; a tree that fails says so itself, in its turn."""
        self._failure = None
        for step in self._steps:
            delta = deltas[step.input]
            if delta is None:
                continue
            try:
                step.take(delta)
            except EvaluationError as error:
                self._failure = step.failed, error
                return None
        return None

    def has_run_for(self, tree: TreeBacked) -> bool:
        """Whether the tree has taken in the change at hand; False if another one could not.

        Raises:
            EvaluationError: it was this tree that could not.
        """
        if self._failure is None:
            return True
        failed, error = self._failure
        if failed is tree:
            raise error
        return False

    def sharing(self, tree: TreeBacked) -> dict[str, Sharing]:
        """The stored views of a tree that others have, too, by name."""
        found = {}
        for name, view in tree.state.maps.items():
            holders = [m for m in self.members if any(v is view for v in m.state.maps.values())]
            if len(holders) > 1:
                names = [u for m in holders if m is not tree for u in self._users(m)]
                found[name] = Sharing(holders[0] is tree, tuple(dict.fromkeys(names)))
        return found

    def commit(self) -> None:
        for member in self.members:
            member.commit()

    def rollback(self) -> None:
        for member in self.members:
            member.rollback()

    def describe(self) -> str:
        return f"{len(self.members)} view trees in step"


def _steps(members: Sequence[TreeBacked], inputs: tuple[Operator, ...]) -> tuple[GroupStep, ...]:
    """One for each atom, with all trees that have it."""
    place = {id(i): n for n, i in enumerate(inputs)}
    runs: dict[AtomIdentity, list[tuple[TreeBacked, int]]] = {}
    for tree in members:
        assert tree.atoms is not None, "trees in a group may share"
        for number, atom in enumerate(tree.atoms):
            runs.setdefault(atom, []).append((tree, number))
    return tuple(GroupStep(place[id(atom.input)], found) for atom, found in runs.items())
