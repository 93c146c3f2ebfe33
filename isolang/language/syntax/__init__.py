"""Texts: the grammar, its parser, the tree, places for messages, slips in words, the usual layout.

A tree says what a text says, with its places; nothing here knows what a name means.
"""
