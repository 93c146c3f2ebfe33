"""Recording: the recorder of transactions, and the lines of its file.

``recorder`` writes each transaction into a history while its client waits. ``lines`` encodes the
lines of the file. ``steps`` lets threads and coroutines share the recorder's code. ``database_log``
adds the version order of the database's log to a complete history.
"""
