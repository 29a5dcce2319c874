from __future__ import annotations

from everview.frontend.catalyst_function_names import FUNCTION_NAMES
from everview.relational.functions import function_named, function_names, is_function


def test_every_name_of_the_front_end_is_declared() -> None:
    """No Catalyst class maps to a function that does not exist."""
    assert not [name for name in FUNCTION_NAMES.values() if not is_function(name)]


def test_names_are_sorted_and_know_themselves() -> None:
    """The registry lists its functions in order."""
    names = function_names()
    assert list(names) == sorted(names)
    assert all(function_named(name).name == name for name in names)
