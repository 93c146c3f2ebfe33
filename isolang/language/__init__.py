"""The ``.iso`` language: how a name, a path or a text becomes a specification with its route.

``load.load_spec`` reads a specification through ``library`` and ``includes``, and
``classify.route.route`` chooses its route. In between, ``syntax`` parses a text to a tree and
``meaning`` lowers the tree to core expressions. This module imports nothing because the command
line must start fast.
"""
