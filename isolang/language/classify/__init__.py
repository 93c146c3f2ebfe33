"""What decides a specification: the fastest engine that is exact for it, and what that needs.

``route`` is the entry. ``event_graph`` compiles checks to automata, ``return_paths`` those that a
single ``rw`` must not close; ``observed`` and ``theorems`` bring axioms over one order of all
transactions to these forms; ``relational`` takes everything else. ``regular`` and ``expression``
are the regular languages that the compilers are made of. docs/routes.md has the proofs.
"""
