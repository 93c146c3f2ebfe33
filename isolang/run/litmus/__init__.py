"""Plays a small history on a database to find out whether the database can produce it.

``litmus`` plays the history's transactions in many interleavings. ``script`` writes them as a
program that users can run without this package.
"""
