"""The law on disk: after any sequence of transactions, checkpoints, restarts and crashes, a database is as in memory."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest

import everview as ev
from everview.session.changing.replace_view import swap_views
from everview.storage.change_log import FILE
from tests.durable.conftest import MEMORY
from tests.durable.shop import add_view, check, contents, make_shop, plans, transaction

STEPS = st.lists(
    st.sampled_from(["apply", "apply", "apply", "reject", "checkpoint", "reopen", "crash", "drop", "create"]),
    max_size=25,
)


@hypothesis.settings(max_examples=hypothesis.settings.default.max_examples // 3)  # an example is many transactions
@hypothesis.given(STEPS, st.sampled_from([1, 30_000, 2**30]))
def test_any_sequence_of_steps(steps: list[str], checkpoint_bytes: int) -> None:
    """Tables, views and version agree with a database in memory at the end, and with recomputation."""
    base = str(MEMORY) if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=base) as scratch, ev.connect() as expected:
        make_shop(expected)
        path, number = Path(scratch) / "0", 0
        db = ev.connect(path, checkpoint_bytes=checkpoint_bytes)
        make_shop(db)
        for step in steps:
            match step:
                case "apply":
                    for each in (db, expected):
                        each.apply(transaction(number))
                    number += 1
                case "reject":
                    with pytest.raises(ev.InvalidChange):
                        db.apply({"orders": [(-1, 1, 1.0, "x"), (-1, 2, 2.0, "y")]})
                case "checkpoint":
                    db.checkpoint()
                case "reopen":
                    db.close()
                    db = ev.connect(path, checkpoint_bytes=checkpoint_bytes)
                case "crash":  # what a killed process leaves is what is there while it runs
                    copy = Path(scratch) / f"{int(path.name) + 1}"
                    db._core.backend._checkpointing.wait()  # type: ignore[attr-defined]
                    shutil.copytree(path, copy, ignore=shutil.ignore_patterns("*-shm", "_lock"))
                    db.close()
                    path, db = copy, ev.connect(copy, checkpoint_bytes=checkpoint_bytes)
                case "drop":
                    for each in (db, expected):
                        if "large" in each.views:
                            each.drop("large")
                case "create":
                    for each in (db, expected):
                        if "large" not in each.views:
                            add_view(each, "large", plans(each)["large"])
        with db:
            assert (contents(db), db.version) == (contents(expected), expected.version)
            check(db)
        assert (path / FILE).exists()


def test_definitions_that_belong_together(tmp_path: Path) -> None:
    """They are one record: all of them are there after a crash, or none, and what failed inside leaves nothing."""
    with ev.connect(tmp_path / "shop") as db:
        make_shop(db)
        core = db._core
        plan = plans(db)["large"]
        with core.together():
            db.drop("large")
            add_view(db, "largest", plan)
            shutil.copytree(tmp_path / "shop", tmp_path / "before", ignore=shutil.ignore_patterns("*-shm", "_lock"))
        with suppress(RuntimeError), core.together():
            add_view(db, "none", plan)
            db.drop("none")
            raise RuntimeError
        old = core.catalog.view("by_city")
        swap_views(core, [old], [replace(old, plan=plans(db)["by_kind"])])
    with ev.connect(tmp_path / "before") as db:
        assert "large" in db.views
        assert "largest" not in db.views
    with ev.connect(tmp_path / "shop") as db:
        assert sorted(db.views) == ["by_city", "by_customer", "by_kind", "by_signal", "largest", "signals_by_city"]
        assert db.view("by_city").columns == db.view("by_kind").columns
        check(db)
