"""What the options of a view mean for this backend: the strategy of its blocks, how it is refreshed, how its result is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from everview.backends.base import Refresh
from everview.backends.refresh_choice import FROM_DELTAS
from everview.catalog import ViewDefinition, ViewOptions
from everview.errors import UnsupportedOperation
from everview.planner.skew_options import SkewOptions


@dataclass(frozen=True, slots=True)
class ViewChoices:
    """How a view is maintained."""

    strategy: str
    refresh: Refresh
    representation: str
    skew: SkewOptions = field(default_factory=SkewOptions)
    """For the strategy ``skew``: the thresholds between light and heavy."""
    depth: int | None = None
    """For the strategy ``recursive``; None: full."""
    shares: bool = True
    """Whether its trees may be in step with those of other views; a lazy one would have to keep up with them."""


def choices_of(view: ViewDefinition) -> ViewChoices:
    """The choices that a view's options make.

    Raises:
        UnsupportedOperation: the backend does not have what is asked for, or not together.
    """
    options = view.options
    if options.lazy and view.is_assertion:
        raise UnsupportedOperation(f"assertion '{view.name}' cannot be lazy: it is checked in every transaction.")
    strategy, refresh = options.strategy, FROM_DELTAS
    if options.refresh == "full":
        strategy, refresh = "recompute", Refresh("full", "the view has refresh='full'")
    elif options.strategy == "recursive" and options.depth == 0:
        strategy, refresh = "recompute", Refresh("full", "the view has depth=0")
    elif options.strategy == "recompute":
        refresh = Refresh("full", "the view has strategy='recompute'")
    elif options.refresh == "auto":
        refresh = Refresh("incremental", "auto: taking in a delta costs no more a row than loading it")
    is_factorized = options.representation == "factorized"
    if is_factorized and strategy not in ("auto", "factorized", "skew"):
        raise UnsupportedOperation(
            f"view '{view.name}' asks for representation='factorized' with strategy='{strategy}', which keeps no tree.",
            hint="use strategy='auto' or 'factorized', or 'skew' for triangles.",
        )
    if is_factorized and view.is_assertion:
        raise UnsupportedOperation(f"assertion '{view.name}' cannot be factorized: its rows are looked at.")
    skew = skew_options(options)
    return ViewChoices(strategy, refresh, options.representation, skew, options.depth, shares=not options.lazy)


def skew_options(options: ViewOptions) -> SkewOptions:
    """The thresholds that a view's options ask for, as fractions with a small denominator."""
    is_refined = options.partitions == "refined"
    match options.epsilon:
        case None:
            return SkewOptions(is_refined=is_refined)
        case tuple():
            given = tuple((name, _fraction(epsilon)) for name, epsilon in options.epsilon)
            return SkewOptions(by_relation=given, is_refined=is_refined)
        case _:
            return SkewOptions(_fraction(options.epsilon), is_refined=is_refined)


def _fraction(epsilon: float) -> Fraction:
    return Fraction(epsilon).limit_denominator(1000)
