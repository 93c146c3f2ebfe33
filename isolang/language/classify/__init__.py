"""Chooses the route of a specification: the fastest engine that is exact, with its input.

Other packages call ``route``. ``event_graph`` compiles checks to automata, and ``return_paths``
compiles checks of cycles that a single ``rw`` closes. ``observed`` and ``theorems`` rewrite axioms
over one order of all transactions to these forms. ``relational`` is for all other specifications.
The compilers use the regular languages in ``regular`` and ``expression``. docs/routes.md has the
proofs.
"""
