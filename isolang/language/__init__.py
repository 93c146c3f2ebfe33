"""The ``.iso`` language: from a name, a path or a text to what decides it.

``load.load_spec`` reads a specification, of ``library`` and ``includes``, and
``classify.route.route`` chooses what decides it. In between, ``syntax`` makes a tree of a text and
``meaning`` makes core expressions of the tree. Nothing is imported here, so that starting the
command line stays cheap.
"""
