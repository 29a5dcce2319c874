"""Compiled kernels are kept as long as the sources that they were made of, and no longer."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import everview
from everview.backends.embedded.state import kernel_cache
from everview.backends.embedded.state.kernel_cache import KEPT_FOLDERS, PACKAGE, source_files

PROGRAM = """
from everview.backends.embedded.tree.kernels import probing
from everview.backends.embedded.tree.view_map import ViewMap
ViewMap(1, [0]).live_slots()
print(sum(probing.live_slots._cache_misses.values()))
"""
TYPES = {"Ints", "Bools", "Bytes", "count_overflow"}
"""Names of types, which stand in annotations only, and of an error that plain Python raises."""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A copy of the package without compiled code."""
    (original,) = everview.__path__
    shutil.copytree(original, tmp_path / "everview", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def environment(installed: Path, **more: str) -> dict[str, str]:
    """The variables of a process that uses the copy."""
    known = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    return {**known, "PYTHONPATH": str(installed), "HOME": str(installed), **more}


def compiled(installed: Path, **more: str) -> int:
    """How many kernels a process compiles that runs one."""
    run = [sys.executable, "-c", PROGRAM]
    return int(subprocess.check_output(run, env=environment(installed, **more), cwd=installed, text=True))


def folders(installed: Path) -> list[Path]:
    """Where the copy keeps compiled code."""
    return sorted((installed / "everview/backends/embedded/__pycache__").glob("kernels-*"))


def test_a_kernel_is_compiled_again_when_a_constant_of_another_module_changes(installed: Path) -> None:
    """A kernel bakes in the fields of `layout`: the same sources find what was compiled, others do not."""
    assert compiled(installed) == 1
    assert compiled(installed) == 0
    layout = installed / "everview/backends/embedded/tree/layout.py"
    layout.write_text(layout.read_text().replace("SUSPECT: Final = 20", "SUSPECT: Final = 21"))
    assert compiled(installed) == 1
    assert compiled(installed) == 0
    memory = installed / "everview/backends/embedded/state/memory.py"
    memory.write_text(memory.read_text() + "\n# an intrinsic may have changed\n")
    assert compiled(installed) == 1
    assert len(folders(installed)) == 3


@pytest.mark.slow
def test_checked_kernels_are_others(installed: Path) -> None:
    """Kernels that test their addresses and kernels that do not are kept side by side."""
    assert compiled(installed) == 1
    assert compiled(installed, EVERVIEW_CHECKED="1") == 1
    assert (compiled(installed), compiled(installed, EVERVIEW_CHECKED="1")) == (0, 0)


def test_a_damaged_file_is_compiled_again(installed: Path) -> None:
    """Half a file, as a crash of the machine may leave it, is not run."""
    assert compiled(installed) == 1
    (kept,) = (p for folder in folders(installed) for p in folder.glob("live_slots-*.nbc"))
    kept.write_bytes(kept.read_bytes()[:-100])
    assert compiled(installed) == 1
    assert compiled(installed) == 0


@pytest.mark.slow
def test_what_is_installed_read_only_is_kept_at_home(installed: Path) -> None:
    """Where the package cannot be written to, compiled code goes to the user's cache."""
    backend = installed / "everview/backends/embedded"
    (backend / "__pycache__").write_text("a file, where no folder can be made")
    assert compiled(installed, PYTHONDONTWRITEBYTECODE="1") == 1
    assert compiled(installed, PYTHONDONTWRITEBYTECODE="1") == 0
    assert list((installed / ".cache/everview").glob("kernels-*/live_slots-*.nbc"))


@pytest.mark.slow
def test_without_any_writable_folder_kernels_are_compiled_each_time(installed: Path) -> None:
    """Nothing can be kept, and everything works."""
    backend = installed / "everview/backends/embedded"
    (backend / "__pycache__").write_text("a file, where no folder can be made")
    (installed / ".cache").write_text("another")
    assert [compiled(installed, PYTHONDONTWRITEBYTECODE="1") for _ in range(2)] == [1, 1]


@pytest.mark.slow
def test_processes_that_compile_at_once_leave_one_good_file(installed: Path) -> None:
    """Several processes meet an empty cache together; the next one finds what it needs."""
    run = [sys.executable, "-c", PROGRAM]
    processes = [
        subprocess.Popen(run, env=environment(installed), cwd=installed, stdout=subprocess.PIPE) for _ in range(3)
    ]
    for process in processes:
        process.communicate(timeout=300)
        assert process.returncode == 0
    assert compiled(installed) == 0
    (folder,) = folders(installed)
    assert len(list(folder.glob("live_slots-*"))) == 1
    assert not list(folder.glob("*.tmp"))


def test_folders_of_old_sources_go(tmp_path: Path) -> None:
    """Those used last are kept, as somebody may go back and forth between versions."""
    for i in range(9):
        (tmp_path / f"kernels-{i}").mkdir()
        (tmp_path / f"kernels-{i}/one.nbc").write_bytes(b"")
        os.utime(tmp_path / f"kernels-{i}", (1000 + i, 1000 + i))
    kernel_cache._remove_old(tmp_path / "kernels-0")
    kept = sorted(p.name for p in tmp_path.iterdir())
    assert kept == ["kernels-0", *(f"kernels-{i}" for i in range(10 - KEPT_FOLDERS, 9))]


def test_the_hash_covers_all_that_kernels_import() -> None:
    """A module that declares kernels is hashed, and so are the modules it imports from, but for names of types."""
    hashed = set(source_files())
    users = [p for p in PACKAGE.rglob("*.py") if "@kernel" in p.read_text() or "@inlined" in p.read_text()]
    assert len(users) > 10
    assert set(users) <= hashed
    for path in (*users, PACKAGE / "state/memory.py", PACKAGE / "state/kernel.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("everview"):
                names = {a.name for a in node.names}
                source = PACKAGE.parents[2] / f"{(node.module or '').replace('.', '/')}.py"
                assert source in hashed or names <= TYPES, f"{path.name} imports {sorted(names)} of {node.module}"
