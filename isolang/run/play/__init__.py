"""Plays workloads on a database with many clients.

``transaction`` plays one transaction, ``clients`` play many, in ``processes`` where one interpreter
is too slow. ``phases`` says which workloads a run plays, ``level_mix`` at which levels; ``runner``
leads the clients until the time is up or ``live``, which judges while they play, finds a violation.
``player`` runs all that in a ``child`` process, ``state`` says how a run goes and went, ``faults``
injects faults into servers, and ``blame`` names the package and line of an error. ``selftest``
tests an adapter before it is trusted, ``interleave`` plays transactions in a given order of their
steps, and ``simulate`` plays workloads without a database.
"""
