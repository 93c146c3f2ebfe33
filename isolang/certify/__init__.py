"""Independent checkers of verdicts, which share only the history columns with the engine."""
