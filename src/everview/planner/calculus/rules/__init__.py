"""Laws of the calculus, each a rewrite in a file of its own, named after its function."""

from everview.planner.calculus.rules.pipeline import (
    DECOMPOSE,
    FACTOR,
    POLYNOMIAL,
    decompose_term,
    factor_term,
    run_term_rules,
    simplify_term,
)

__all__ = ["DECOMPOSE", "FACTOR", "POLYNOMIAL", "decompose_term", "factor_term", "run_term_rules", "simplify_term"]
