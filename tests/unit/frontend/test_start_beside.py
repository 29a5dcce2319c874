"""What is done while Spark starts, and that it is not done where nothing is waited for."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql import SparkSession

from everview.backends.embedded.numba_start import start_numba
from everview.frontend import gateway as door


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """No session is active."""
    monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda _: None))
    monkeypatch.setattr(door.SparkGateway, "reach", lambda _self, _text: None)


def test_it_is_done_while_spark_starts(no_session: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session "starts" only once the other thread has run: they would wait for each other if one came after the other."""
    done = threading.Event()
    session = object()

    def start(_computes: bool) -> object:
        assert done.wait(60), "nothing ran beside the start"
        return session

    monkeypatch.setattr(door, "_start_session", start)
    assert door.SparkGateway(meanwhile=done.set).user_session is session


def test_a_session_that_is_there_is_not_waited_for() -> None:
    """Then nothing is done beside it either."""
    done = threading.Event()
    given = object()
    gateway = door.SparkGateway(given, meanwhile=done.set)  # type: ignore[arg-type]
    assert gateway.user_session is given
    assert not done.is_set()


def test_numba_can_be_started_by_several_threads() -> None:
    """The first view of another database may come at the same time."""
    failed: list[BaseException] = []

    def start() -> None:
        try:
            start_numba()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    assert not any(thread.is_alive() for thread in threads)
