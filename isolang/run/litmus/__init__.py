"""Plays histories as programs: ``litmus`` plays a history on a database, in its interleavings.

``script`` writes such a program for users without this package.
"""
