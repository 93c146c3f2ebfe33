"""Reads histories of Jepsen workloads whose operations are not reads and writes of keys.

The operations of a bank, a set, a counter, comments, and sequential inserts are translated to
equivalent reads and writes of keys, as far as equivalents exist. ``operations`` pairs invocations
with completions, ``read`` detects the kind of workload, and one module per kind translates the
operations.
"""
