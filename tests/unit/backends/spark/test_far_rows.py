"""Files of far rows: what is removed, and what is never."""

from __future__ import annotations

from pathlib import Path

from everview.backends.spark.far_rows import remove_files
from everview.backends.spark.relation_store import Layout, StoredRelation
from everview.backends.spark.segments import Segment


def test_a_users_folder_stays(tmp_path: Path) -> None:
    """A file of a followed Delta table that is gone already takes no folder of the user's with it; our own files go."""
    theirs, ours = tmp_path / "users" / "part=1", tmp_path / "relation"
    for folder in (theirs, ours / "far"):
        folder.mkdir(parents=True)
    (theirs / "notes.txt").write_text("kept")
    (ours / "far" / "a.parquet").write_bytes(b"")
    outside = Segment(str(theirs / "vacuumed.parquet"), 1, 1, (("__weight", "1"),))
    remove_files([StoredRelation("t", ours, Layout(()), held=[outside, Segment("far/a.parquet", 1, 1)])])
    assert (theirs / "notes.txt").exists()
    assert not (ours / "far").exists()
