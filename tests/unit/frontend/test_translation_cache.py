"""The folder of kept translations: whole entries or nothing, bounded, and one for each version of the front end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from everview.frontend import translation_cache
from everview.frontend.translation_cache import TranslationCache, open_cache


def _entries(cache: TranslationCache) -> list[Path]:
    return sorted(cache.folder.glob("*.json"))


def test_what_was_kept_is_found(tmp_path: Path) -> None:
    """A value is found under its own key, by another object on the same folder too, and under no other key."""
    TranslationCache(tmp_path).keep(["a", 1], {"x": [1, "é\ud800"]})
    assert TranslationCache(tmp_path).find(["a", 1]) == {"x": [1, "é\ud800"]}
    assert TranslationCache(tmp_path).find(["a", 2]) is None


@pytest.mark.parametrize("damage", [b"", b"short", b"\0" * 400])
def test_a_damaged_entry_is_none(tmp_path: Path, damage: bytes) -> None:
    """A file that is not what was written counts as nothing, and is written anew."""
    cache = TranslationCache(tmp_path)
    cache.keep("key", {"x": 1})
    (entry,) = _entries(cache)
    entry.write_bytes(damage)
    assert cache.find("key") is None
    cache.keep("key", {"x": 2})
    assert cache.find("key") == {"x": 2}


def test_each_flipped_byte_is_noticed(tmp_path: Path) -> None:
    """No entry with a changed byte is read."""
    cache = TranslationCache(tmp_path)
    cache.keep("key", {"x": 1})
    (entry,) = _entries(cache)
    whole = entry.read_bytes()
    for place in range(len(whole)):
        entry.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert cache.find("key") is None


def test_what_was_used_longest_ago_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is bounded; what is in use stays."""
    monkeypatch.setattr(translation_cache, "MOST_ENTRIES", 10)
    monkeypatch.setattr(translation_cache, "_WRITES_BETWEEN_SWEEPS", 1)
    cache = TranslationCache(tmp_path)
    for number in range(10):
        cache.keep(number, number)
    for age, entry in enumerate(_entries(cache)):
        os.utime(entry, (age, age))
    assert cache.find(3) == 3
    cache.keep(10, 10)
    assert len(_entries(cache)) <= 5
    assert (cache.find(3), cache.find(10)) == (3, 10)


def test_folders_of_old_front_ends_go(tmp_path: Path) -> None:
    """A new version removes the folders of all but the last few."""
    for age in range(6):
        folder = tmp_path / f"translations-{age}"
        folder.mkdir()
        os.utime(folder, (age, age))
    cache = TranslationCache(tmp_path)
    cache.keep("key", 1)
    kept = sorted(f.name for f in tmp_path.iterdir())
    assert kept == sorted([cache.folder.name, "translations-3", "translations-4", "translations-5"])


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """Without a place to keep translations, none are kept."""
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    cache = TranslationCache(blocked)
    cache.keep("key", 1)
    assert cache.find("key") is None


def test_who_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller decides before the environment, and either can say that nothing is kept."""
    monkeypatch.setenv("EVERVIEW_TRANSLATION_CACHE", str(tmp_path / "environment"))
    by_environment, by_caller = open_cache(), open_cache(tmp_path / "caller")
    assert by_environment is not None
    assert by_environment.folder.parent == tmp_path / "environment"
    assert by_caller is not None
    assert by_caller.folder.parent == tmp_path / "caller"
    assert open_cache(False) is None
    monkeypatch.setenv("EVERVIEW_TRANSLATION_CACHE", "off")
    assert open_cache() is None
    monkeypatch.delenv("EVERVIEW_TRANSLATION_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("sys.platform", "linux")
    at_home = open_cache()
    assert at_home is not None
    assert at_home.folder.parent == tmp_path / "home" / "everview"
