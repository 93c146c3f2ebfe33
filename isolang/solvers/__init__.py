"""The solvers, one module each. A solver takes a problem and returns a model or a refutation."""
