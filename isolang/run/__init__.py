"""Runs workloads on real databases, and judges the histories that they record.

An adapter of a database imports the modules of this folder: ``target`` has the protocols that it
implements, ``adapter`` its base classes, ``operation`` the operations of transactions, ``outcome``
the meaning of errors, ``address`` the user's name of a database; ``settings`` are the options of a
run. The folders, from the bottom up: ``marks`` in the database, ``record`` of what clients did,
``drivers`` of known packages and ``servers`` started here; ``sql`` and ``families`` of databases,
and their ``targets``; ``workloads``; ``play``, ``judge``, and on top ``litmus`` and ``survey``.
"""
