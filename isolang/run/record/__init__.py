"""Records the transactions of clients in a history.

``recorder`` writes each transaction into the history's file while its client waits. ``lines``
encodes the lines of this file. ``steps`` allows threads and coroutines to share the recorder's
code. ``database_log`` adds the version order from the database's log to a finished history.
"""
