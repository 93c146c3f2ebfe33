"""The ``.iso`` language: from a name, a path or a text to the route that decides it.

``load.load_spec`` reads a specification through ``library`` and ``includes``, and
``classify.route.route`` chooses its route. In between, ``syntax`` parses a text to a tree and
``meaning`` lowers the tree to core expressions. This module imports nothing because the command
line must start fast.
"""
