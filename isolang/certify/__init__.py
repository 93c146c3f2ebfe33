"""Independent checkers of proofs, which share only the columns of a history with the engine."""
