"""The ``.iso`` language: turns a name, a path or a text into a specification with its route.

``load.load_spec`` reads a specification through ``library`` and ``includes``, and
``classify.route.route`` chooses its route. In between, ``syntax`` parses a text into a tree and
``meaning`` lowers the tree to core expressions. This module imports nothing, so that the command
line starts fast.
"""
