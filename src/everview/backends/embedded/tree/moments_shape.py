"""How the moments of a product of several factors are put together from theirs.

Of factors (c_k, s_k, Q_k) whose features are different ones, and with C(…) the product of all counts but some,

    s = C(k) · s_k        Q = C(k) · Q_k  on the features of one factor        Q = s_k · (C(k, l) · s_l)ᵀ  between two

So (s_k, Q_k), which lie side by side, are multiplied by one number; and a feature of s_k by the row u_k of what it meets: the
C(k, l) · s_l of the features after it that belong to others. The features of the product stand in *runs* of one factor each.

Products are summed in a scratch area where each of these loops has whole lanes of its own: vectors that overlap with what
was just stored would have to wait for it. What is summed is moved to its place in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from everview.backends.embedded.state.lanes import LANES
from everview.backends.embedded.tree.layout import FACTOR_WORDS


@dataclass(frozen=True, slots=True)
class ProductShape:
    """What the machine is told: how much room it needs, and what it does, in words.

    ``factors`` is their number, ``sums`` the room for sums, with the place of (s_k, Q_k) of each factor in ``owns``; ``scaled``
    the room for the rows u.
    """

    factors: int
    sums: int
    scaled: int
    owns: tuple[int, ...]
    scalings: tuple[tuple[int, ...], ...]
    crossings: tuple[tuple[int, ...], ...]
    moves: tuple[tuple[int, ...], ...]

    def words(self) -> tuple[int, ...]:
        """All of it, one list after another."""
        heads = (self.sums, self.scaled, len(self.scalings), len(self.crossings), len(self.moves))
        lists = (self.scalings, self.crossings, self.moves)
        return (*heads, *self.owns, *(word for part in lists for one in part for word in one))

    @property
    def scratch(self) -> int:
        """How many words the machine works in: factors, counts, rows u, sums."""
        return (
            FACTOR_WORDS * self.factors + 4 * (self.factors + 1) + 2 * self.factors**2 + 2 * self.scaled + 2 * self.sums
        )


def product_shape(owners: Sequence[int], factors: int, degree: int) -> ProductShape:
    """The shape of a product; ``owners`` says of each feature which factor has it."""
    runs, seen = [], [0] * factors
    for owner, group in groupby(owners):
        length = len(list(group))
        runs.append((owner, seen[owner], length))
        seen[owner] += length
    sums, owns = 0, []
    for count in seen:
        owns.append(sums)
        sums += _lanes(count if degree == 1 else count + count * (count + 1) // 2)
    scaled, place = 0, 0
    scalings, crossings, moves = list[tuple[int, ...]](), list[tuple[int, ...]](), list[tuple[int, ...]]()

    def move(source: int, length: int) -> None:
        nonlocal place
        if moves and moves[-1][0] + moves[-1][2] == source:  # places follow one another anyway
            moves[-1] = (*moves[-1][:2], moves[-1][2] + length)
        else:
            moves.append((source, place, length))
        place += length

    for owner, first, length in runs:
        move(owns[owner] + first, length)
    rows: dict[int, dict[int, int]] = {}
    for k in range(factors) if degree == 2 else ():
        own = [r for r, run in enumerate(runs) if run[0] == k]
        rows[k] = {}
        for r in range(own[0] + 1, len(runs)) if own else ():
            other, first, length = runs[r]
            if other != k:
                rows[k][r] = scaled
                scalings.append((min(k, other) * factors + max(k, other), other, first, length, scaled))
                scaled += length
        scaled = _lanes(scaled + LANES) if rows[k] else scaled  # a vector may reach beyond the last
    for r, (k, first, length) in enumerate(runs if degree == 2 else ()):
        met = {x: at for x, at in rows[k].items() if x > r}
        count = sum(runs[x][2] for x in met)
        for i in range(first, first + length):
            start = sums
            if met:
                crossings.append((k, i, min(met.values()), count, start))
                sums += _lanes(count)
            own_row = owns[k] + seen[k] + i * seen[k] - i * (i - 1) // 2
            move(own_row, first + length - i)
            for x, (other, begun, more) in enumerate(runs[r + 1 :], r + 1):
                move(own_row + begun - i if other == k else start + met[x] - min(met.values()), more)
    return ProductShape(factors, sums, scaled, tuple(owns), tuple(scalings), tuple(crossings), tuple(moves))


def _lanes(count: int) -> int:
    return -(-count // LANES) * LANES
