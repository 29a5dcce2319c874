"""Trigger programs: per input relation, what to do with a delta. The narrow waist between the planner and the engines."""
