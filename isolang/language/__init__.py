"""The ``.iso`` language: from a text to the automata of its checks.

``load.load_spec`` reads a specification, ``route.route`` chooses what decides it,
``library.list_library`` lists the levels. Nothing is imported here, so that starting the command
line stays cheap.
"""
