"""Provides base classes for families of similar databases without SQL.

``key_value`` is for servers that store keys and values, ``embedded`` for in-process engines, and
``table_formats`` for formats whose transactions read a snapshot and write with one upsert.
``request_lines`` talks to programs that respond to requests line by line. ``versioned_store``
implements the database behind the target ``memory``.
"""
