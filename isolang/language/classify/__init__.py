"""Chooses the route of a specification: the fastest exact engine, with the input that it needs.

Other packages call ``route``. ``event_graph`` compiles checks to automata, and ``return_paths``
compiles checks whose cycles a single ``rw`` must not close; ``observed`` and ``theorems`` rewrite
axioms over one order of all transactions to these forms; ``relational`` takes all other
specifications. The compilers use the regular languages of ``regular`` and ``expression``.
docs/routes.md has the proofs.
"""
