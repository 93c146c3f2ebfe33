"""The solvers, one module each: each takes a problem, and returns a model or a refutation."""
