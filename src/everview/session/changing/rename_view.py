"""Another name for a view that nothing reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everview.catalog import ViewDefinition
from everview.errors import UnsupportedOperation
from everview.session.changing.readers import check_can_be_made_anew, told_as
from everview.session.changing.replace_view import swap_views

if TYPE_CHECKING:
    from everview.session.core import Core


def rename_view(core: Core, name: str, new: str) -> ViewDefinition:
    """Gives a view another name; handles and subscriptions go with it.

    Raises:
        DependencyError: another view or an assertion reads it, or it is published.
        UnsupportedOperation: it is a covariance, or reads a table that keeps no rows.
    """
    with core.uninterrupted, core.locked():
        old = core.catalog.view(name)
        core.catalog.check_name(new)
        if old.covariance is not None:
            raise UnsupportedOperation(
                f"view '{old.name}' cannot be renamed: it is a covariance.", hint="create it anew under the other name."
            )
        with told_as("renamed"):
            core.catalog.droppable(old.name)
            for check in core.drop_checks:
                check(old.name)
        check_can_be_made_anew(core, f"view '{old.name}' cannot be renamed", [old])
        core.heal()
        renamed = replace(old, name=new)
        swap_views(core, [old], [renamed])
        core.forget_in_spark(old.name)
        if old.name.lower() in core.sources:
            core.sources[new.lower()] = core.sources.pop(old.name.lower())
        core.subscriptions.rename_view(old.name, new)
        return renamed
