"""Decides whether a violation does harm, by running its operations one after another.

The operations of a violation run serially, in every order, each time from the prepared state. If
some order gives the same rows and the same answers as the concurrent run, the violation is harmless
with this data; if no order does, it is harmful (docs/harm.md).
"""
