"""Determines which versions of rows were read and written, and audits the result.

The versions come from the columns added to statements, and from the server's log.
"""
