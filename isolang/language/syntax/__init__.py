"""The syntax of the language: grammar, parser, syntax tree, syntax errors and standard layout.

A syntax tree holds the content of a text and the place of each part. No module in this package
knows the meaning of any name.
"""
