"""Provides tools for testing databases and applications, such as assertions and a pytest plugin.

:mod:`isolang.testing.assertion` raises an error if a history does not satisfy a level.
:mod:`isolang.testing.pytest_plugin` defines the ``isolation`` fixture, whose value is defined in
:mod:`isolang.testing.isolation`.
"""
