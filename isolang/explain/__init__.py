"""Explanations: from a refutation to an argument that a person can follow.

``explain.explain`` makes a ``violation.Violation``, ``smaller`` looks for simpler ones, first
among the short cycles that ``known`` sees, and ``plain`` turns them into JSON values. Nothing is
imported here, so that the command line starts fast.
"""
