"""Understands statements: their tables, their conditions, and the columns that can be added.

What a text does not say, the database's catalogue says.
"""
