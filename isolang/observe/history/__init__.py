"""Writes observed transactions as the lines of a history."""
