"""Explanations: from a refutation to an argument that a person can follow.

``explain.explain`` makes a ``violation.Violation``; ``smaller`` looks for simpler refutations,
first among the short cycles that ``known`` finds; and ``violation.plain`` makes JSON values. This
module imports nothing, so that the command line starts fast.
"""
