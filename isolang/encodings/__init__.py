"""Turns problems into solver input. The native engine builds its event graph itself."""
