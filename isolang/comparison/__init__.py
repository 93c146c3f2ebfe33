"""Determines which of two specifications is stronger, with a proof or a separating history.

`normal` states a specification by dependencies if a theorem allows this. `walks` computes the
language of the cycles that the specification forbids, and `inclusion` proves that one language
includes another. `symbolic` represents a history whose operations are variables of a SAT solver,
`choices` encodes that this history satisfies or violates a specification, and `separate` searches
for the smallest history that one specification allows and another one forbids. `compare` and
`lattice` combine these answers. `vacuity` determines which checks of a specification a history
could violate at all.
"""
