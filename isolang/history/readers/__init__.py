"""Readers for the formats of histories.

Most readers call native code and add sentences about how the input was interpreted.
"""
