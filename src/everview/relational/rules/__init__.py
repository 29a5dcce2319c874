"""Rewrites of relational plans: one rule a file, the file named after its function.

``simplify`` runs the pipeline: each rule bottom-up over the plan, the plan verified after each.
"""

from everview.relational.rules.pipeline import PIPELINE, SPLIT_JOINS, WITH_TREES, run_rules, simplify, use_references

__all__ = ["PIPELINE", "SPLIT_JOINS", "WITH_TREES", "run_rules", "simplify", "use_references"]
