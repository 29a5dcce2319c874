"""The checked mode ends a kernel that would leave its structure, and says which instruction it was."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from everview.backends.embedded.state.checks import Structures

PROGRAM = """
import everview as ev
from everview.backends.embedded.dependencies import below
from everview.backends.embedded.tree.layout import CAPACITY, ENTRIES, INDEX_LINKS, STRIDE
from everview.backends.embedded.tree.tree_operator import TreeOperator

db = ev.connect()
db.create_table("r", "a INT, b INT")
db.create_table("s", "b INT, c INT")
view = db.create_view("v", "SELECT a, c, count(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY a, c")
db.table("r").insert([(i, i % 3) for i in range(40)])
db.table("s").insert([(i % 3, i) for i in range(40)])
db.verify()
root = next(iter(db._core.backend._views.values())).root
(tree,) = [o for o in below(root) if isinstance(o, TreeOperator)]
(damaged,) = [m for name, m in tree.state.maps.items() if name.startswith("r")]
damages = {
    "stride": (damaged.fields, STRIDE, 50),
    "links": (damaged._indexes[0].fields, INDEX_LINKS, 8 * int(damaged.fields[CAPACITY])),
    "entries": (damaged.fields, ENTRIES, -(1 << 20)),
}
for name, (fields, field, offset) in damages.items():
    fields[field] += offset
    try:
        db.table("s").insert([(1, 100), (2, 200)])
    except ev.InternalError as error:
        print(f"{name}: {error.message}")
    fields[field] -= offset
    db.verify()
"""


@pytest.mark.slow
def test_a_wrong_offset_is_named() -> None:
    """A map with a wrong field makes an instruction leave its structure: nothing is read, and the error names it."""
    environment = {**os.environ, "EVERVIEW_CHECKED": "1"}
    run = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["stride", "links", "entries"]
    for line in lines:
        assert "a kernel would access" in line
        assert "of a trigger: slice f" in line
        assert " * r index 0 by " in line


def test_structures_come_and_go() -> None:
    """An array is known until it is no more, and anew where it has been resized."""
    known = Structures()
    one, matrix = np.zeros(10, dtype=np.int64), np.zeros((3, 4), dtype=np.int64)
    known.add_array(one, "one")
    known.add_array(one, "one")
    known.add_rows(matrix)
    known.add_buffer(16, 8)
    assert len(known._sorted) == 5
    known.forget(one)
    one.resize(1000, refcheck=False)
    known.add_array(one, "one")
    assert [s[1] - s[0] for s in known._sorted if s[3] == "one"] == [8000]
    del matrix
    known.add_array(one, "one")
    assert len(known._sorted) == 2
    starts = known._mirror[0, :2].tolist()
    assert starts == sorted(starts)
