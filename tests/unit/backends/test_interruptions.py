"""Signals that come while something is changed: each is called once, where it does no harm."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from everview.backends.interruptions import Uninterrupted


class Told(Exception):
    """What the handler of these tests raises."""


@pytest.fixture
def told() -> Iterator[list[int]]:
    """Has signals noted, and then raised."""
    noted: list[int] = []

    def handler(number: int, _frame: object) -> None:
        noted.append(number)
        raise Told

    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGALRM)}
    yield noted
    for number, old in before.items():
        signal.signal(number, old)


def test_a_signal_waits_for_the_outermost_section(told: list[int]) -> None:
    """However often it comes; afterwards the handler is in its place again."""
    section, reached = Uninterrupted(), []

    def work() -> None:
        with section:
            with section:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)
                reached.append(list(told))
            reached.append(list(told))

    with pytest.raises(Told):
        work()
    assert (reached, told) == ([[], []], [signal.SIGINT])
    with pytest.raises(Told):
        signal.raise_signal(signal.SIGINT)
    with section:
        pass


def test_every_signal_is_called(told: list[int]) -> None:
    """Also where the first handler raises, and beside an error of the section's own."""

    def work() -> None:
        with Uninterrupted():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGALRM)
            raise ValueError

    with pytest.raises(Told):
        work()
    assert told == [signal.SIGINT, signal.SIGALRM]


def test_it_gives_way_where_all_can_be_undone(told: list[int]) -> None:
    """There and not earlier, and once."""
    section = Uninterrupted()
    section.give_way()
    with section:
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(Told):
            section.give_way()
        section.give_way()
    assert told == [signal.SIGINT]


def test_other_threads_are_not_concerned(told: list[int]) -> None:
    """They may not touch handlers, and nobody interrupts them."""
    section, before = Uninterrupted(), signal.getsignal(signal.SIGINT)
    found: list[object] = []

    def work() -> None:
        with section:
            section.give_way()
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert (found, told) == ([before], [])


def test_the_thread_that_forks_is_the_main_one_of_its_process() -> None:
    """Signals come to it there, so it is the one to let them wait."""
    ended: list[int] = []

    def work() -> None:
        child = os.fork()
        if not child:
            os._exit(0 if Uninterrupted.main_thread == threading.get_ident() else 1)
        ended.append(os.waitpid(child, 0)[1])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert (ended, Uninterrupted.main_thread) == ([0], threading.main_thread().ident)


def test_a_handler_that_was_set_meanwhile_stays(told: list[int]) -> None:
    """PySpark sets one when it starts; signals that nobody handles are left alone."""
    section = Uninterrupted()
    with section:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    with section:
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    assert told == []
