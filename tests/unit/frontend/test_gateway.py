from __future__ import annotations

import pytest

from everview.errors import UnknownName
from everview.frontend.gateway import SparkGateway
from everview.relational.nodes import Field
from everview.relational.types import INT32

FIELDS = (Field("a", INT32),)


def test_names_alone_do_not_start_spark() -> None:
    """Tables come and go without a JVM."""
    gateway = SparkGateway()
    gateway.register("Orders", FIELDS)
    gateway.register("parts", FIELDS)
    gateway.unregister("orders")
    assert not gateway.is_started


def test_unknown_names_do_not_start_spark() -> None:
    """A misspelt table is an error with the near miss, in any case of letters."""
    gateway = SparkGateway()
    gateway.register("Orders", FIELDS)
    with pytest.raises(UnknownName, match="'ordrs' does not exist") as caught:
        gateway.table("ordrs")
    assert caught.value.hint == "did you mean 'Orders'?"
    gateway.unregister("ORDERS")
    with pytest.raises(UnknownName):
        gateway.table("Orders")
    assert not gateway.is_started
