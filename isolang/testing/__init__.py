"""Provides tools for testing databases and applications: assertions, a pytest plugin, and more.

:mod:`isolang.testing.assertion` raises an error if a history does not satisfy a level.
:mod:`isolang.testing.pytest_plugin` defines the fixture ``isolation``, whose value is an object of
:mod:`isolang.testing.isolation`.
"""
