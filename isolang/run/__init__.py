"""Runs workloads on real databases, and records what they did as histories to be judged.

``recorder`` writes histories down, ``outcome`` says what an error means, ``drivers`` what those of
known packages do. ``target`` is what an adapter of a database has to offer, ``targets`` are those
that there are; they share ``adapter``, ``sql`` and ``keyvalue``. ``servers`` starts servers of our
own, ``faults`` has things go wrong in them. ``operation`` and ``workloads`` say what clients do,
``play`` does it once; ``phases`` says what a run plays, ``clients`` play it, and ``runner`` leads
them until the time is up or a violation is found, which ``prefix`` looks for.
"""
