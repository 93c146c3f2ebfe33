"""Determines which of two specifications is stronger, by a proof or a separating history.

`normal` expresses a specification by dependencies if a theorem allows this. `walks` computes the
language of the cycles forbidden by a specification, and `inclusion` proves that one language
includes another. `symbolic` represents a history whose operations are SAT variables, `choices`
encodes that this history satisfies or violates a specification, and `separate` searches for the
smallest history that one specification allows and another forbids. `compare` and `lattice` combine
these answers. `vacuity` determines which of a specification's checks a history could violate at
all.
"""
