"""Speaks the protocol between an application and its server.

A connection's bytes become statements and answers. The messages of a statement that can also return
the versions of its rows are rewritten; all others pass unchanged.
"""
