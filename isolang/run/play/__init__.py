"""Plays workloads on a database with many clients.

``transaction`` plays one transaction and ``clients`` play many, in several ``processes`` if a
single interpreter is too slow. ``phases`` chooses the workloads of a run, and ``level_mix`` their
levels. ``runner`` runs the clients until the time is up or ``live``, which judges the growing
history, finds a violation. ``player`` runs all of this in a ``child`` process. ``state`` holds the
progress and the result of a run, ``faults`` injects faults into servers, and ``blame`` names the
package and line of an error. ``selftest`` tests an adapter before isocheck trusts it,
``interleave`` plays transactions step by step in a given order, and ``simulate`` plays workloads
without a database.
"""
