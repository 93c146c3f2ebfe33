"""Compares specifications: which one is stronger, shown by a proof or by a separating history.

`normal` writes a specification over dependencies where a theorem allows it; `walks` has the
language of the cycles that it then forbids, and `inclusion` proves that one language includes
another. `symbolic` is a history whose operations are variables of a SAT solver, `choices` encodes
on it that a specification is satisfied or violated, and `separate` searches there for the smallest
history that one specification allows and another one forbids. `compare` and `lattice` combine the
answers. `vacuity` determines which checks of a specification a history could violate at all.
"""
