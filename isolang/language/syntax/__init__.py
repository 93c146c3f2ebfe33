"""The syntax: grammar, parser, tree, places for messages, explained syntax errors, usual layout.

A tree has the content of a text, with its places; no module here knows the meaning of a name.
"""
