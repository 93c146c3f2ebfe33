"""The syntax of the language: grammar, parser, syntax tree, syntax errors, and the usual layout.

A syntax tree has the content of a text and the place of each part. No module in this package knows
what a name means.
"""
