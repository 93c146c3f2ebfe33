"""Explanations: they turn a refutation into an argument that a person can follow.

``explain.explain`` makes a ``violation.Violation``; ``smaller`` looks for simpler refutations,
first among the short cycles that ``known`` finds; and ``violation.plain`` makes JSON values. This
module imports nothing because the command line must start fast.
"""
