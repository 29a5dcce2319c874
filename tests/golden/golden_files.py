"""Comparing text with a file of this folder; ``EVERVIEW_UPDATE_GOLDEN=1`` writes the file instead."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
IS_UPDATE = os.environ.get("EVERVIEW_UPDATE_GOLDEN") == "1"


def assert_golden(name: str, text: str) -> None:
    """Fails unless the file of this name holds exactly the text (and a line end)."""
    path = FOLDER / name
    if IS_UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    assert path.exists(), f"{path} does not exist. Hint: EVERVIEW_UPDATE_GOLDEN=1 writes it."
    expected, found = path.read_text(encoding="utf-8").splitlines(), text.splitlines()
    difference = "\n".join(difflib.unified_diff(expected, found, "expected", "found", lineterm="", n=1))
    assert not difference, f"{name} differs. Hint: EVERVIEW_UPDATE_GOLDEN=1 rewrites it.\n{difference}"
