"""Turns refutations into explanations that people can follow.

``explain.explain`` makes a ``violation.Violation`` from a refutation. ``smaller`` looks for simpler
refutations, starting with the short cycles found by ``known``. ``violation.plain`` converts a
violation into JSON values. This module has no imports, because the command line must start fast.
"""
