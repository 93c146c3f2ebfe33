"""Two specifications compared: which one is stronger, by proof, or what tells them apart.

`normal` writes a specification in the terms of dependencies where a theorem allows it; `walks` has
the cycles that it then forbids, as a language, and `inclusion` proves that one language is within
another. `symbolic` is a history whose operations are variables of a SAT solver, `choices` states on
it that a specification is met, or is not, and `separate` looks there for the smallest history that
one specification allows and another one forbids. `compare` and `lattice` put the answers together.
`vacuity` says which checks of a specification a given history could violate at all.
"""
