"""Independent checkers of verdicts; they share only the history columns with the engine."""
