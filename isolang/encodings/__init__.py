"""Translates problems to the input of solvers, except for the native engine's own encoding."""
