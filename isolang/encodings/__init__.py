"""Translates problems into solver input, except for the native engine's own encoding."""
