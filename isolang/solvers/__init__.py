"""The solvers, one per module. A solver takes a problem and returns a model or a refutation."""
