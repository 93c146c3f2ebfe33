"""Turns refutations into explanations: arguments that people can follow.

``explain.explain`` makes a ``violation.Violation`` from a refutation. ``smaller`` looks for simpler
refutations, first among the short cycles that ``known`` finds. ``violation.plain`` converts a
violation to values for JSON. Because the command line must start fast, this module has no imports.
"""
