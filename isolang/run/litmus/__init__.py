"""Histories as programs: ``litmus`` plays one on a database, in all its interleavings.

``script`` writes it down for users without this package.
"""
