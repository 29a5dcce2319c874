"""Estimated numbers of rows: how many combinations of some variables there are, given values of others.

    rows(K | B) below some atoms

starts with what B determines and covers K atom by atom. An atom adds min(Π domains of its new variables, its rows / distinct
values of its known variables) combinations: 1 if the dependencies say so. Unknown numbers of distinct values come from keys
(an atom whose variable determines it has as many values as rows) and from other atoms with the variable; failing that, a tenth
of the rows. Textbook estimates: they rank orders, they promise nothing.
"""

from __future__ import annotations

from math import inf, prod

from everview.planner.bit_sets import bits
from everview.planner.encoded_query import EncodedQuery

UNKNOWN_SHARE = 0.1
"""Distinct values of a variable of which nothing is known, as a share of the rows."""

FEW = 3
"""Of more variables than these it is asked first how many rows the join has at all, which is cheap to be above."""

LITTLE = 500.0
"""An estimate below this is good enough to rank orders by, without asking for the rows of the whole join."""


class Estimates:
    """Row estimates over an encoded query, remembered."""

    def __init__(self, encoded: EncodedQuery) -> None:
        self.encoded = encoded
        query = encoded.query
        self.rows = tuple(max(1.0, a.rows) for a in query.atoms)
        self._distinct = [self._known_distinct(i) for i in range(len(query.atoms))]
        self._fill_unknown()
        self.domain = {
            v: min(d[v] for d in self._distinct if v in d) for v in bits(encoded.variable_set(encoded.variables))
        }
        self._schemas: dict[int, int] = {}
        self._remembered: dict[tuple[int, int, int], float] = {}
        self._factors: dict[tuple[int, int, int], float] = {}
        total = sum(self.rows[i] for i in bits(encoded.updatable))
        self.weights = tuple(r / total if encoded.updatable >> i & 1 else 0.0 for i, r in enumerate(self.rows))
        self.total_rows = sum(self.rows)

    def matches(self, wanted: int, bound: int, atoms: int) -> float:
        """rows(wanted | bound) in the join of the atoms: never more than there are rows of that join at all."""
        key = (wanted, bound, atoms)
        found = self._remembered.get(key)
        if found is None:
            is_few = wanted.bit_count() <= FEW
            found = self._cover(wanted, bound, atoms, inf) if is_few else inf
            if found > LITTLE:
                schema = self._schema(atoms)
                limit = inf if schema == wanted else self.matches(schema, bound, atoms)
                found = min(found, limit) if is_few else self._cover(wanted, bound, atoms, limit)
            self._remembered[key] = found
        return found

    def _schema(self, atoms: int) -> int:
        schema = self._schemas.get(atoms)
        if schema is None:
            schema = 0
            for i in bits(atoms):
                schema |= self.encoded.atoms[i]
            self._schemas[atoms] = schema
        return schema

    def _cover(self, wanted: int, bound: int, atoms: int, limit: float) -> float:
        encoded = self.encoded
        known = encoded.closure(bound, atoms)
        wanted &= ~known
        result = 1.0
        while wanted:
            best = best_each = 0.0
            best_new = 0
            for i in bits(atoms & encoded.atoms_touching(wanted)):
                new = encoded.atoms[i] & wanted
                factor = self._factor(i, new, encoded.atoms[i] & known)
                each = factor if new & (new - 1) == 0 else factor ** (1 / new.bit_count())
                if not best_new or each < best_each:
                    best, best_each, best_new = factor, each, new
            if not best_new:
                break  # no atom here has them: they are not of this join
            result *= best
            if result >= limit:
                return limit
            known = encoded.closure(known | best_new, atoms)
            wanted &= ~known
        return result

    def _factor(self, atom: int, new: int, known: int) -> float:
        key = (atom, new, known)
        found = self._factors.get(key)
        if found is None:
            rows = self.rows[atom]
            seen = min(rows, prod(self._distinct[atom][v] for v in bits(known)))
            found = min(rows / seen, prod(self.domain[v] for v in bits(new)))
            self._factors[key] = found
        return found

    def _known_distinct(self, i: int) -> dict[int, float]:
        atom = self.encoded.query.atoms[i]
        said = dict(atom.distinct)
        found = {}
        for v in bits(self.encoded.atoms[i]):
            name = self.encoded.variables[v]
            if name in said:
                found[v] = min(self.rows[i], max(1.0, said[name]))
            elif self.encoded.atoms[i] & ~self.encoded.closure(1 << v, 1 << i) == 0:
                found[v] = self.rows[i]  # it is a key, or the only variable
        return found

    def _fill_unknown(self) -> None:
        best: dict[int, float] = {}
        for known in self._distinct:
            for v, d in known.items():
                best[v] = min(d, best.get(v, d))
        for i, known in enumerate(self._distinct):
            for v in bits(self.encoded.atoms[i]):
                guess = best.get(v, max(1.0, self.rows[i] * UNKNOWN_SHARE))
                known.setdefault(v, min(self.rows[i], guess))
