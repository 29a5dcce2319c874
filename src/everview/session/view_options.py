"""Checking the options of ``create_view``, before anything is translated."""

from __future__ import annotations

from everview.catalog import ViewOptions
from everview.errors import UnsupportedOperation, did_you_mean

STRATEGIES = ("auto", "factorized", "recursive", "first_order", "skew", "recompute")
REPRESENTATIONS = ("auto", "listing", "factorized")
PARTITIONS = ("single", "refined")
REFRESHES = ("incremental", "auto", "incremental_strict", "full")
"""Incremental: from deltas; auto: by cost, deltas or anew; incremental_strict: an error instead of anew; full: always anew."""

ON_ERRORS = ("suspend", "reject")
ON_VIOLATIONS = ("reject", "drop", "quarantine")


def check_options(options: ViewOptions) -> ViewOptions:
    """The options, if they make sense together.

    >>> check_options(ViewOptions(strategy="recursive", depth=2)).depth
    2

    Raises:
        UnsupportedOperation: a value is none of those there are, or belongs to another strategy.
    """
    _check_choice("strategy", options.strategy, STRATEGIES)
    _check_choice("representation", options.representation, REPRESENTATIONS)
    _check_choice("on_violation", options.on_violation, ON_VIOLATIONS)
    if options.on_error is not None:
        _check_choice("on_error", options.on_error, ON_ERRORS)
    if options.refresh is not None:
        _check_choice("refresh", options.refresh, REFRESHES)
        if options.strategy == "recompute" and options.refresh != "full":
            raise UnsupportedOperation(
                f"refresh={options.refresh!r} has no meaning for strategy 'recompute', which always recomputes.",
                hint="leave one of them out.",
            )
    if not isinstance(options.lazy, bool):
        raise UnsupportedOperation(f"lazy={options.lazy!r} is not True or False.")
    if options.depth is not None:
        _check_belongs("depth", options.depth, options.strategy, "recursive")
        if not isinstance(options.depth, int) or isinstance(options.depth, bool) or options.depth < 0:
            raise UnsupportedOperation(
                f"depth={options.depth!r} is not a number of steps: 0, 1, 2, …",
                hint="0 recomputes, 1 is classical maintenance, and without depth deltas are materialized to the end.",
            )
    if options.epsilon is not None:
        _check_belongs("epsilon", options.epsilon, options.strategy, "skew")
        given = dict(options.epsilon).values() if isinstance(options.epsilon, tuple) else (options.epsilon,)
        for epsilon in given:
            is_number = isinstance(epsilon, int | float) and not isinstance(epsilon, bool)
            if not is_number or not 0 <= epsilon <= 1:
                raise UnsupportedOperation(f"epsilon={epsilon!r} is not a number from 0 to 1.")
    _check_choice("partitions", options.partitions, PARTITIONS)
    if options.partitions != "single":
        _check_belongs("partitions", options.partitions, options.strategy, "skew")
    return options


def _check_choice(option: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        hint = did_you_mean(str(value), choices) or f"it is one of {', '.join(choices)}."
        raise UnsupportedOperation(f"there is no {option} {value!r}.", hint=hint)


def _check_belongs(option: str, value: object, strategy: str, owner: str) -> None:
    if strategy != owner:
        raise UnsupportedOperation(
            f"{option}={value!r} has no meaning for strategy '{strategy}'.", hint=f"it goes with strategy='{owner}'."
        )
