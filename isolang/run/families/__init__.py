"""Provides families of databases without SQL, whose adapters share code.

``key_value`` is for servers that hold keys and values, ``embedded`` for engines in this process,
``table_formats`` for formats that read a snapshot and write by one upsert, and ``request_lines``
for programs that answer requests line by line. ``versioned_store`` is the database of the target
``memory``.
"""
