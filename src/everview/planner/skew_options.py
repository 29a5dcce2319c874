"""What a user says about heavy and light parts: the exponents of the thresholds, and on how many keys to partition."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from everview.planner.join_query import JoinQuery
from everview.planner.skew_search import NoSkewPlan

HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class SkewOptions:
    """``epsilon`` is the exponent of a threshold where ``by_relation`` has none.

    ``is_refined``: partition a relation on each of its keys (appendix D of the paper), and not on one.
    """

    epsilon: Fraction = HALF
    by_relation: tuple[tuple[str, Fraction], ...] = ()
    is_refined: bool = False

    def of_atoms(self, query: JoinQuery) -> dict[str, Fraction]:
        """The exponent of each atom. An atom has the name of its table; of several over one table, the second is ``name#1``.

        Raises:
            NoSkewPlan: a name is that of no relation of the query.
        """
        given = {name.lower(): epsilon for name, epsilon in self.by_relation}
        found = {}
        for atom in query.atoms:
            names = (atom.name.lower(), atom.name.lower().split("#", maxsplit=1)[0])
            found[atom.name] = next((given[n] for n in names if n in given), self.epsilon)
        known = {n for a in query.atoms for n in (a.name.lower(), a.name.lower().split("#", maxsplit=1)[0])}
        for name in given:
            if name not in known:
                raise NoSkewPlan(f"epsilon names '{name}', and it joins {', '.join(a.name for a in query.atoms)}")
        return found
