"""Chooses the route of a specification: the fastest exact engine, and its input.

Other packages call ``route``. ``event_graph`` compiles checks to automata, and ``return_paths``
compiles checks that forbid cycles closed by a single ``rw``. ``observed`` and ``theorems`` rewrite
axioms over a total order of the transactions into these forms. ``relational`` handles all other
specifications. The compilers use the regular languages in ``regular`` and ``expression``.
docs/routes.md has the proofs.
"""
