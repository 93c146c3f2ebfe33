"""The syntax: grammar, parser, tree, places for messages, explained syntax errors, usual layout.

A tree has the content of a text and the place of each part. No module of this package knows the
meaning of a name.
"""
