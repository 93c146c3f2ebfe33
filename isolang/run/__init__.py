"""Runs workloads on real databases, and records what they did as histories to be judged.

``recorder`` writes histories down, ``outcome`` says what an error means; ``target`` is what an
adapter of a database has to offer, ``targets`` are those that there are, ``server`` starts servers
of our own; ``operation`` and ``workloads`` say what clients do, ``play`` does it once, ``runner``
with many clients until the time is up or a violation is found, which ``prefix`` looks for.
"""
